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

func roundsPerNs() float64 {
	const rounds = 2_000_000
	bestNs := math.MaxFloat64
	for i := 0; i < 10; i++ {
		bestNs = math.Min(bestNs, peer.TimeNs(func() { sink += peer.BusyWork(rounds, 1) }))
	}
	return rounds / bestNs
}

// poisson draws the number of events of a time in which `due` are expected: the gaps between
// events are exponential.
func poisson(random *rand.Rand, due float64) int {
	count := 0
	for t := random.ExpFloat64(); t < due; t += random.ExpFloat64() {
		count++
	}
	return count
}

func startThem(perSecond float64, rounds int, tick, duration time.Duration,
	waits []int64) (started, ticks int) {
	random := rand.New(rand.NewSource(42))
	var all sync.WaitGroup
	begin := time.Now()
	last := begin
	for started < len(waits) {
		time.Sleep(tick)
		ticks++
		now := time.Now()
		if now.Sub(begin) > duration {
			break
		}
		count := poisson(random, perSecond*now.Sub(last).Seconds())
		last = now
		if count > len(waits)-started {
			count = len(waits) - started
		}
		all.Add(count)
		for i := 0; i < count; i++ {
			wait := &waits[started]
			started++
			born := time.Now()
			go func() {
				*wait = int64(time.Since(born))
				peer.BusyWork(rounds, uint64(*wait))
				all.Done()
			}()
		}
	}
	all.Wait()
	return started, ticks
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
	waits := make([]int64, int(perSecond*duration.Seconds()*1.2+1_000))
	started, ticks := 0, 0
	ns := peer.TimeNs(func() {
		started, ticks = startThem(perSecond, rounds, tick, duration, waits)
	})
	waits = waits[:started]
	if started == 0 {
		return
	}
	sort.Slice(waits, func(a, b int) bool { return waits[a] < waits[b] })
	at := func(share float64) float64 { return float64(waits[int(share*float64(started-1))]) / 1e3 }
	peer.Report("median_us", at(0.5))
	peer.Report("p99_us", at(0.99))
	peer.Report("worst_us", at(1))
	peer.Report("ticks_per_second", float64(ticks)*1e9/ns)
	peer.Report("started_per_second", float64(started)*1e9/ns)
}
