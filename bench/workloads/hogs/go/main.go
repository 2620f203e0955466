// hogs: as many endless loops as twice the procs, without any call, and one goroutine that sleeps 1
// ms in a loop. How late that one wakes up, and how fairly the loops share the CPUs.
package main

import (
	"runtime"
	"sort"
	"time"

	"magpie.bench/support/peer"
)

type loop struct {
	turns int64
	_     [56]byte
}

func main() {
	peer.UseProcs()
	milliseconds := peer.Number("milliseconds", 3000)
	loops := make([]loop, 2*runtime.GOMAXPROCS(0))
	for i := range loops {
		go func(mine *loop) {
			for {
				mine.turns++
			}
		}(&loops[i])
	}
	var lateMs []float64
	begin := time.Now()
	for time.Since(begin) < time.Duration(milliseconds)*time.Millisecond {
		before := time.Now()
		time.Sleep(time.Millisecond)
		lateMs = append(lateMs, float64(time.Since(before))/1e6-1)
	}
	sort.Float64s(lateMs)
	least, most := loops[0].turns, loops[0].turns
	for i := range loops {
		if loops[i].turns < least {
			least = loops[i].turns
		}
		if loops[i].turns > most {
			most = loops[i].turns
		}
	}
	peer.Report("p99_late_ms", lateMs[len(lateMs)*99/100])
	peer.Report("max_late_ms", lateMs[len(lateMs)-1])
	peer.Report("median_late_ms", lateMs[len(lateMs)/2])
	peer.Report("least_share_percent", 100*float64(least)/float64(most))
}
