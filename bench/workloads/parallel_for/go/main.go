// parallel_for: a trivial body over arrays. Go has no such loop: the usual program cuts the range
// into as many pieces as there are procs, and starts a goroutine for each but one.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"magpie.bench/support/peer"
)

func saxpy(x, y []float32) {
	y = y[:len(x)]
	for i := range x {
		y[i] = 0.5*x[i] + y[i]
	}
}

func parallelSaxpy(x, y []float32) {
	pieces := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	all.Add(pieces - 1)
	for i := 1; i < pieces; i++ {
		first, last := i*len(x)/pieces, (i+1)*len(x)/pieces
		go func() {
			saxpy(x[first:last], y[first:last])
			all.Done()
		}()
	}
	saxpy(x[:len(x)/pieces], y[:len(x)/pieces])
	all.Wait()
}

func main() {
	peer.UseProcs()
	elements := peer.Number("elements", 10_000_000)
	x, y := make([]float32, elements), make([]float32, elements)
	for i := range x {
		x[i], y[i] = 2, 1
	}
	averageNs := func(count, rounds int) float64 {
		if count > elements {
			count = elements
		}
		for warm := 0; warm < 2; warm++ {
			parallelSaxpy(x[:count], y[:count])
		}
		return peer.TimeNs(func() {
			for round := 0; round < rounds; round++ {
				parallelSaxpy(x[:count], y[:count])
			}
		}) / float64(rounds)
	}
	first := peer.TimeNs(func() { parallelSaxpy(x, y) })
	large := averageNs(elements, 20)
	for _, value := range y {
		if value != 1+23 {
			fmt.Fprintln(os.Stderr, "saxpy: wrong result")
			os.Exit(1)
		}
	}
	peer.Report("first_ms", first/1e6)
	peer.Report("ms", large/1e6)
	peer.Report("us_of_100000", averageNs(100_000, 2000)/1e3)
	peer.Report("us_of_1000", averageNs(1000, 20_000)/1e3)
}
