// balance: a thousand goroutines of about 1 ms of computation each, all started by one goroutine.
// Ideal is the time of the same work done by one goroutine, measured just before, over GOMAXPROCS.
package main

import (
	"math"
	"sync"

	"magpie.bench/support/peer"
)

var sink uint64

func roundsPerMillisecond() int {
	const rounds = 5_000_000
	bestNs := math.MaxFloat64
	for i := 0; i < 10; i++ {
		bestNs = math.Min(bestNs, peer.TimeNs(func() { sink += peer.BusyWork(rounds, 1) }))
	}
	return int(rounds * 1e6 / bestNs)
}

func workInSequence(pieces, rounds int) {
	for i := 0; i < pieces; i++ {
		sink += peer.BusyWork(rounds, uint64(i))
	}
}

func workInGoroutines(pieces, rounds int) {
	var all sync.WaitGroup
	all.Add(pieces)
	for i := 0; i < pieces; i++ {
		go func(seed uint64) {
			peer.BusyWork(rounds, seed)
			all.Done()
		}(uint64(i))
	}
	all.Wait()
}

func main() {
	procs := peer.UseProcs()
	goroutines := peer.Number("goroutines", 1_000)

	rounds := roundsPerMillisecond()
	workInGoroutines(goroutines/10, rounds)
	sequential := peer.TimeNs(func() { workInSequence(goroutines, rounds) })
	parallel := peer.TimeNs(func() { workInGoroutines(goroutines, rounds) })
	peer.Report("sequential_ms", sequential/1e6)
	peer.Report("parallel_ms", parallel/1e6)
	peer.Report("percent_of_ideal", 100*sequential/float64(procs)/parallel)
}
