// spawn_join: main starts a million empty goroutines, then waits for all of them.
package main

import (
	"sync"

	"magpie.bench/support/peer"
)

func spawnAndJoin(goroutines int) {
	var all sync.WaitGroup
	all.Add(goroutines)
	for i := 0; i < goroutines; i++ {
		go func() { all.Done() }()
	}
	all.Wait()
}

func main() {
	peer.UseProcs()
	goroutines := peer.Number("goroutines", 1_000_000)

	first := peer.TimeNs(func() { spawnAndJoin(goroutines) })
	warm := peer.TimeNs(func() { spawnAndJoin(goroutines) })
	peer.Report("first_ns_per_op", first/float64(goroutines))
	peer.Report("ns_per_op", warm/float64(goroutines))
}
