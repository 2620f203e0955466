// mutex: goroutines that lock, count and unlock, all the same mutex. The result is wall time over
// all of these.
package main

import (
	"sync"

	"magpie.bench/support/peer"
)

func lockAll(goroutines, rounds int) {
	var mutex sync.Mutex
	count := 0
	var all sync.WaitGroup
	all.Add(goroutines)
	for i := 0; i < goroutines; i++ {
		go func() {
			for n := 0; n < rounds; n++ {
				mutex.Lock()
				count++
				mutex.Unlock()
			}
			all.Done()
		}()
	}
	all.Wait()
	if count != goroutines*rounds {
		panic("lost an update")
	}
}

func main() {
	peer.UseProcs()
	goroutines := peer.Number("goroutines", 8)
	rounds := peer.Number("rounds", 1_000_000)

	total := float64(goroutines) * float64(rounds)
	first := peer.TimeNs(func() { lockAll(goroutines, rounds) })
	warm := peer.TimeNs(func() { lockAll(goroutines, rounds) })
	peer.Report("first_ns_per_op", first/total)
	peer.Report("ns_per_op", warm/total)
}
