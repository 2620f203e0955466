// yield: a hundred goroutines that do nothing but yield. The result is wall time over all yields.
package main

import (
	"runtime"
	"sync"

	"magpie.bench/support/peer"
)

func yieldAll(goroutines, yields int) {
	var all sync.WaitGroup
	all.Add(goroutines)
	for i := 0; i < goroutines; i++ {
		go func() {
			for n := 0; n < yields; n++ {
				runtime.Gosched()
			}
			all.Done()
		}()
	}
	all.Wait()
}

func main() {
	peer.UseProcs()
	goroutines := peer.Number("goroutines", 100)
	yields := peer.Number("yields", 100_000)

	total := float64(goroutines) * float64(yields)
	first := peer.TimeNs(func() { yieldAll(goroutines, yields) })
	warm := peer.TimeNs(func() { yieldAll(goroutines, yields) })
	peer.Report("first_ns_per_op", first/total)
	peer.Report("ns_per_op", warm/total)
}
