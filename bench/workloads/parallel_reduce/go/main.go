// parallel_reduce: the sum of an array of doubles, in the order of the array. Go has no such
// function: the usual program cuts the array into as many pieces as there are procs, and starts a
// goroutine for each but one.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"magpie.bench/support/peer"
)

func sum(values []float64) float64 {
	total := 0.0
	for _, value := range values {
		total += value
	}
	return total
}

func parallelSum(values []float64) float64 {
	pieces := runtime.GOMAXPROCS(0)
	sums := make([]float64, pieces)
	var all sync.WaitGroup
	all.Add(pieces - 1)
	for i := 1; i < pieces; i++ {
		i := i
		go func() {
			sums[i] = sum(values[i*len(values)/pieces : (i+1)*len(values)/pieces])
			all.Done()
		}()
	}
	sums[0] = sum(values[:len(values)/pieces])
	all.Wait()
	return sum(sums)
}

func main() {
	const rounds = 20
	peer.UseProcs()
	elements := peer.Number("elements", 10_000_000)
	values := make([]float64, elements)
	for i := range values {
		values[i] = 0.5
	}
	total := 0.0
	first := peer.TimeNs(func() { parallelSum(values) })
	ns := peer.TimeNs(func() {
		for round := 0; round < rounds; round++ {
			total += parallelSum(values)
		}
	})
	if total != float64(elements)/2*rounds {
		fmt.Fprintf(os.Stderr, "wrong sum %f\n", total)
		os.Exit(1)
	}
	peer.Report("first_ms", first/1e6)
	peer.Report("ms", ns/rounds/1e6)
}
