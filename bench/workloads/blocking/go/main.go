// blocking: 64 goroutines make 200 system calls each that sleep 1 ms, beside two that count. How
// long the calls take in all, and how much of their speed alone, before and after, the counters
// keep. raw=1: by a raw system call, which Go does not know to block.
package main

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"magpie.bench/support/peer"
)

type counter struct {
	count, longestStopNs int64
	_                    [48]byte
}

var stop atomic.Bool
var counters [2]counter

func (c *counter) run() {
	last := time.Now()
	for turn := 1; !stop.Load(); turn++ {
		atomic.StoreInt64(&c.count, c.count+1)
		if turn%1024 != 0 {
			continue
		}
		now := time.Now()
		if gap := int64(now.Sub(last)); gap > atomic.LoadInt64(&c.longestStopNs) {
			atomic.StoreInt64(&c.longestStopNs, gap)
		}
		last = now
	}
}

func counted() int64 {
	return atomic.LoadInt64(&counters[0].count) + atomic.LoadInt64(&counters[1].count)
}

func speedAlone() float64 {
	before, begin := counted(), time.Now()
	time.Sleep(200 * time.Millisecond)
	return float64(counted()-before) / float64(time.Since(begin))
}

func main() {
	peer.UseProcs()
	declared := peer.Number("raw", 0) == 0
	goroutines := peer.Number("goroutines", 64)
	calls := peer.Number("calls", 200)
	sleep := func() {
		t := syscall.Timespec{Nsec: 1_000_000}
		if declared {
			syscall.Syscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
		} else {
			syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
		}
	}
	var all, callers sync.WaitGroup
	for i := range counters {
		all.Add(1)
		go func(c *counter) { c.run(); all.Done() }(&counters[i])
	}
	time.Sleep(100 * time.Millisecond)

	alone := speedAlone()
	for i := range counters {
		atomic.StoreInt64(&counters[i].longestStopNs, 0)
	}
	before, begin := counted(), time.Now()
	for i := 0; i < goroutines; i++ {
		callers.Add(1)
		go func() {
			for k := 0; k < calls; k++ {
				sleep()
			}
			callers.Done()
		}()
	}
	callers.Wait()
	took := time.Since(begin)
	beside := float64(counted()-before) / float64(took)
	longest := counters[0].longestStopNs
	if counters[1].longestStopNs > longest {
		longest = counters[1].longestStopNs
	}
	alone = (alone + speedAlone()) / 2
	stop.Store(true)
	all.Wait()
	peer.Report("ms", float64(took)/1e6)
	peer.Report("counters_percent", 100*beside/alone)
	peer.Report("longest_stop_ms", float64(longest)/1e6)
}
