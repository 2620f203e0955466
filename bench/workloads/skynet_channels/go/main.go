// skynet_channels: a tree of goroutines, ten children each, a million leaves; every node returns the sum of
// its subtree to its parent, through a channel.
package main

import (
	"fmt"
	"os"

	"magpie.bench/support/peer"
)

const children = 10

func skynet(result chan<- int, firstLeaf, leaves int) {
	if leaves == 1 {
		result <- firstLeaf
		return
	}
	share := leaves / children
	results := make(chan int)
	for i := 0; i < children; i++ {
		go skynet(results, firstLeaf+i*share, share)
	}
	sum := 0
	for i := 0; i < children; i++ {
		sum += <-results
	}
	result <- sum
}

func runTree(leaves int) {
	result := make(chan int)
	go skynet(result, 0, leaves)
	if sum := <-result; sum != leaves*(leaves-1)/2 {
		fmt.Fprintf(os.Stderr, "skynet_channels: wrong sum %d\n", sum)
		os.Exit(1)
	}
}

func main() {
	peer.UseProcs()
	leaves := peer.Number("leaves", 1_000_000)

	first := peer.TimeNs(func() { runTree(leaves) })
	warm := peer.TimeNs(func() { runTree(leaves) })
	peer.Report("first_ms", first/1e6)
	peer.Report("ms", warm/1e6)
}
