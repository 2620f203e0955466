// chan_buffered: one producer, one consumer, a buffer of 128. The result is wall time per value.
package main

import (
	"os"

	"magpie.bench/support/peer"
)

func stream(values, capacity int) {
	channel := make(chan int, capacity)
	go func() {
		for i := 0; i < values; i++ {
			channel <- i
		}
		close(channel)
	}()
	sum := 0
	for value := range channel {
		sum += value
	}
	if sum != values*(values-1)/2 {
		os.Exit(1)
	}
}

func main() {
	peer.UseProcs()
	values := peer.Number("values", 10_000_000)
	capacity := peer.Number("capacity", 128)

	first := peer.TimeNs(func() { stream(values, capacity) })
	warm := peer.TimeNs(func() { stream(values, capacity) })
	peer.Report("first_ns_per_op", first/float64(values))
	peer.Report("ns_per_op", warm/float64(values))
}
