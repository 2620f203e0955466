// load: the Go twin of ../magpie.cc. Go does not count steals.
package main

import (
	"math"
	"math/rand"
	"runtime"
	"sort"
	"sync"
	"time"

	"magpie.bench/support/peer"
)

var sink uint64

// roundsPerNs is short enough that, on a busy machine too, one of the tries is not interrupted.
func roundsPerNs() float64 {
	const rounds = 100_000
	bestNs := math.MaxFloat64
	for i := 0; i < 100; i++ {
		bestNs = math.Min(bestNs, peer.TimeNs(func() { sink += peer.BusyWork(rounds, 1) }))
	}
	return rounds / bestNs
}

// dueTimes are the times, in ns since the beginning, at which goroutines are due: the gaps between
// them are exponential.
func dueTimes(perSecond float64, duration time.Duration) (times []int64) {
	random := rand.New(rand.NewSource(42))
	gap := func() float64 { return random.ExpFloat64() * 1e9 / perSecond }
	for t := gap(); t < float64(duration); t += gap() {
		times = append(times, int64(t))
	}
	return times
}

func startThem(due []int64, rounds int, tick time.Duration, fromGo, fromDue []int64) (ticks int) {
	var all sync.WaitGroup
	all.Add(len(due))
	begin := time.Now()
	for next := 0; next < len(due); {
		time.Sleep(tick)
		ticks++
		now := int64(time.Since(begin))
		for ; next < len(due) && due[next] <= now; next++ {
			index, born := next, time.Now()
			go func() {
				start := time.Now()
				fromGo[index] = int64(start.Sub(born))
				fromDue[index] = int64(start.Sub(begin)) - due[index]
				peer.BusyWork(rounds, uint64(index))
				all.Done()
			}()
		}
	}
	all.Wait()
	return ticks
}

func main() {
	procs := peer.UseProcs()
	percent := peer.Number("load_percent", 50)
	workUs := peer.Number("work_us", 10)
	tick := time.Duration(peer.Number("tick_us", 1_000)) * time.Microsecond
	duration := time.Duration(peer.Number("milliseconds", 2_000)) * time.Millisecond

	cpus := math.Min(float64(procs), float64(runtime.NumCPU()))
	perSecond := float64(percent) / 100 * cpus * 1e6 / float64(workUs)
	rounds := int(roundsPerNs() * float64(workUs) * 1e3)
	due := dueTimes(perSecond, duration)
	if len(due) == 0 {
		return
	}
	fromGo, fromDue := make([]int64, len(due)), make([]int64, len(due))
	ticks := 0
	ns := peer.TimeNs(func() { ticks = startThem(due, rounds, tick, fromGo, fromDue) })
	at := func(waits []int64, share float64) float64 {
		sort.Slice(waits, func(a, b int) bool { return waits[a] < waits[b] })
		return float64(waits[int(share*float64(len(waits)-1))]) / 1e3
	}
	peer.Report("median_us", at(fromGo, 0.5))
	peer.Report("p99_us", at(fromGo, 0.99))
	peer.Report("worst_us", at(fromGo, 1))
	peer.Report("due_median_us", at(fromDue, 0.5))
	peer.Report("due_p99_us", at(fromDue, 0.99))
	peer.Report("ticks_per_second", float64(ticks)*1e9/ns)
	peer.Report("started_per_second", float64(len(due))*1e9/ns)
}
