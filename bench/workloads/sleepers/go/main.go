// sleepers: 100,000 goroutines sleep one second each. How late they wake on average and at worst,
// and the CPU time of the whole. The second of two rounds counts.
package main

import (
	"sync"
	"sync/atomic"
	"time"

	"magpie.bench/support/peer"
)

type result struct {
	meanLateUs, maxLateUs, cpuMs float64
}

func round(goroutines, milliseconds int) result {
	var lateSum, lateMax int64
	duration := time.Duration(milliseconds) * time.Millisecond
	cpuBefore := peer.CPUNs()
	var all sync.WaitGroup
	all.Add(goroutines)
	for i := 0; i < goroutines; i++ {
		go func() {
			due := time.Now().Add(duration)
			time.Sleep(duration)
			late := int64(time.Since(due))
			atomic.AddInt64(&lateSum, late)
			for {
				most := atomic.LoadInt64(&lateMax)
				if late <= most || atomic.CompareAndSwapInt64(&lateMax, most, late) {
					break
				}
			}
			all.Done()
		}()
	}
	all.Wait()
	count := float64(goroutines)
	cpuMs := (peer.CPUNs() - cpuBefore) / 1e6
	return result{float64(lateSum) / count / 1e3, float64(lateMax) / 1e3, cpuMs}
}

func main() {
	peer.UseProcs()
	goroutines := peer.Number("goroutines", 100_000)
	milliseconds := peer.Number("milliseconds", 1000)
	first := round(goroutines, milliseconds)
	second := round(goroutines, milliseconds)
	peer.Report("cpu_ms", second.cpuMs)
	peer.Report("mean_late_us", second.meanLateUs)
	peer.Report("max_late_us", second.maxLateUs)
	peer.Report("first_cpu_ms", first.cpuMs)
	peer.Report("first_mean_late_us", first.meanLateUs)
}
