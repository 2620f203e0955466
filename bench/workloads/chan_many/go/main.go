// chan_many: eight producers and eight consumers share a channel with a buffer of 128. The result
// is wall time per value.
package main

import (
	"os"
	"sync"
	"sync/atomic"

	"magpie.bench/support/peer"
)

func stream(producers, consumers, each int) {
	channel := make(chan int, 128)
	var producing, consuming sync.WaitGroup
	var sum int64
	consuming.Add(consumers)
	for c := 0; c < consumers; c++ {
		go func() {
			mine := 0
			for value := range channel {
				mine += value
			}
			atomic.AddInt64(&sum, int64(mine))
			consuming.Done()
		}()
	}
	producing.Add(producers)
	for p := 0; p < producers; p++ {
		go func() {
			for i := 0; i < each; i++ {
				channel <- i
			}
			producing.Done()
		}()
	}
	producing.Wait()
	close(channel)
	consuming.Wait()
	if int(sum) != producers*(each*(each-1)/2) {
		os.Exit(1)
	}
}

func main() {
	peer.UseProcs()
	producers := peer.Number("producers", 8)
	consumers := peer.Number("consumers", 8)
	each := peer.Number("values", 500_000)

	values := float64(producers * each)
	first := peer.TimeNs(func() { stream(producers, consumers, each) })
	warm := peer.TimeNs(func() { stream(producers, consumers, each) })
	peer.Report("first_ns_per_op", first/values)
	peer.Report("ns_per_op", warm/values)
}
