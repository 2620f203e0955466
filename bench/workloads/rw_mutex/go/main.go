// rw_mutex: goroutines that read under an RWMutex, and write every so often. The result is wall
// time over all of these.
package main

import (
	"sync"

	"magpie.bench/support/peer"
)

var kept [64]int

func useAll(goroutines, rounds, writeEvery int) {
	var mutex sync.RWMutex
	value := 0
	var all sync.WaitGroup
	all.Add(goroutines)
	for i := 0; i < goroutines; i++ {
		go func(i int) {
			sum := 0
			for n := 1; n <= rounds; n++ {
				if n%writeEvery == 0 {
					mutex.Lock()
					value++
					mutex.Unlock()
				} else {
					mutex.RLock()
					sum += value
					mutex.RUnlock()
				}
			}
			kept[i%len(kept)] = sum
			all.Done()
		}(i)
	}
	all.Wait()
}

func main() {
	peer.UseProcs()
	goroutines := peer.Number("goroutines", 8)
	rounds := peer.Number("rounds", 1_000_000)
	writeEvery := peer.Number("write_every", 1000)

	total := float64(goroutines) * float64(rounds)
	first := peer.TimeNs(func() { useAll(goroutines, rounds, writeEvery) })
	warm := peer.TimeNs(func() { useAll(goroutines, rounds, writeEvery) })
	peer.Report("first_ns_per_op", first/total)
	peer.Report("ns_per_op", warm/total)
}
