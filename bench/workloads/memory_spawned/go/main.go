// memory_spawned: what a goroutine costs that was started but has not run yet.
//
// Go may preempt main inside the loop and run some goroutines early. Those wait at a gate, so that
// nothing is freed and used again; in Go a goroutine has its stack from the start, so its cost is
// the same.
package main

import (
	"sync"
	"sync/atomic"

	"magpie.bench/support/peer"
)

func main() {
	peer.UseProcs()
	goroutines := peer.Number("goroutines", 1_000_000)

	var all, gate sync.WaitGroup
	var started int64
	all.Add(goroutines)
	gate.Add(1)

	residentBefore, tablesBefore := peer.ResidentBytes(), peer.StatusBytes("VmPTE")
	for i := 0; i < goroutines; i++ {
		go func() {
			atomic.AddInt64(&started, 1)
			gate.Wait()
			all.Done()
		}()
	}
	resident := peer.ResidentBytes() - residentBefore
	tables := peer.StatusBytes("VmPTE") - tablesBefore
	ranEarly := atomic.LoadInt64(&started)
	gate.Done()
	all.Wait()

	count := float64(goroutines)
	peer.Report("ran_early", float64(ranEarly))
	peer.Report("bytes_each", float64(resident)/count)
	peer.Report("bytes_each_with_page_tables", float64(resident+tables)/count)
}
