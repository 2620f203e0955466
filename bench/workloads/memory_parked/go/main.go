// memory_parked: what a goroutine costs that ran and now waits. A million of them wait at a gate.
package main

import (
	"sync"

	"magpie.bench/support/peer"
)

func main() {
	peer.UseProcs()
	goroutines := peer.Number("goroutines", 1_000_000)

	var arrived, gate, all sync.WaitGroup
	arrived.Add(goroutines)
	all.Add(goroutines)
	gate.Add(1)

	residentBefore, tablesBefore := peer.ResidentBytes(), peer.StatusBytes("VmPTE")
	for i := 0; i < goroutines; i++ {
		go func() {
			arrived.Done()
			gate.Wait()
			all.Done()
		}()
	}
	arrived.Wait()
	resident := peer.ResidentBytes() - residentBefore
	tables := peer.StatusBytes("VmPTE") - tablesBefore
	gate.Done()
	all.Wait()

	count := float64(goroutines)
	peer.Report("bytes_each", float64(resident)/count)
	peer.Report("bytes_each_with_page_tables", float64(resident+tables)/count)
}
