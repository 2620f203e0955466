// chan_pingpong: two goroutines pass a number to and fro over two unbuffered channels. The result
// is wall time per round.
package main

import (
	"os"

	"magpie.bench/support/peer"
)

func play(rounds int) {
	there, back := make(chan int), make(chan int)
	go func() {
		for value := range there {
			back <- value + 1
		}
		close(back)
	}()
	value := 0
	for i := 0; i < rounds; i++ {
		there <- value
		value = <-back
	}
	close(there)
	if _, ok := <-back; ok || value != rounds {
		os.Exit(1)
	}
}

func main() {
	peer.UseProcs()
	rounds := peer.Number("rounds", 2_000_000)

	first := peer.TimeNs(func() { play(rounds) })
	warm := peer.TimeNs(func() { play(rounds) })
	peer.Report("first_ns_per_op", first/float64(rounds))
	peer.Report("ns_per_op", warm/float64(rounds))
}
