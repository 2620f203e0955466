// timer_stop: makes a timer of an hour and stops it, again and again, as every request with a
// time-out does; once alone, once beside 100,000 timers that stay. The second of two rounds counts.
package main

import (
	"time"

	"magpie.bench/support/peer"
)

func nsPerTimer(timers int) float64 {
	return peer.TimeNs(func() {
		for i := 0; i < timers; i++ {
			timer := time.NewTimer(time.Hour)
			timer.Stop()
		}
	}) / float64(timers)
}

func main() {
	peer.UseProcs()
	timers := peer.Number("timers", 1_000_000)
	first := nsPerTimer(timers)
	peer.Report("ns_per_op", nsPerTimer(timers))
	peer.Report("first_ns_per_op", first)
	others := make([]*time.Timer, 100_000)
	for i := range others {
		others[i] = time.NewTimer(time.Duration(600+i%6000) * time.Second)
	}
	peer.Report("ns_per_op_beside_others", nsPerTimer(timers))
	for _, other := range others {
		other.Stop()
	}
}
