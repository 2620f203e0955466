// park_many: a million goroutines start and wait at a gate; then it opens. Wall time for each, to
// start and to wait, and to wake and to end. All of it cold: the first thing that the process does.
package main

import (
	"sync"

	"magpie.bench/support/peer"
)

func main() {
	peer.UseProcs()
	goroutines := peer.Number("goroutines", 1_000_000)
	var arrived, gate, all sync.WaitGroup
	parked := peer.TimeNs(func() {
		arrived.Add(goroutines)
		all.Add(goroutines)
		gate.Add(1)
		for i := 0; i < goroutines; i++ {
			go func() {
				arrived.Done()
				gate.Wait()
				all.Done()
			}()
		}
		arrived.Wait()
	})
	woken := peer.TimeNs(func() {
		gate.Done()
		all.Wait()
	})
	peer.Report("first_ns_per_op", parked/float64(goroutines))
	peer.Report("first_wake_ns_per_op", woken/float64(goroutines))
}
