// fib: a goroutine for every call, down to the leaves: fib(n-1) in a goroutine, fib(n-2) in place.
// The result comes over a channel with room for it, so that nobody waits to hand it over; a
// WaitGroup in its place is slower.
package main

import (
	"fmt"
	"os"

	"magpie.bench/support/peer"
)

func fib(n int) int {
	if n < 2 {
		return n
	}
	first := make(chan int, 1)
	go func() { first <- fib(n - 1) }()
	second := fib(n - 2)
	return <-first + second
}

func plainFib(n int) int {
	a, b := 0, 1
	for ; n > 0; n-- {
		a, b = b, a+b
	}
	return a
}

func main() {
	peer.UseProcs()
	n := peer.Number("n", 32)
	compute := func() {
		if found := fib(n); found != plainFib(n) {
			fmt.Fprintf(os.Stderr, "fib(%d) is not %d\n", n, found)
			os.Exit(1)
		}
	}
	first := peer.TimeNs(compute)
	warm := peer.TimeNs(compute)
	peer.Report("first_ms", first/1e6)
	peer.Report("ms", warm/1e6)
}
