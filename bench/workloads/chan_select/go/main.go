// chan_select: eight producers fill a buffered channel each, one goroutine selects over the eight.
// The result is wall time per value.
package main

import (
	"os"

	"magpie.bench/support/peer"
)

func stream(each int) {
	var c [8]chan int
	for i := range c {
		channel := make(chan int, 128)
		c[i] = channel
		go func() {
			for i := 0; i < each; i++ {
				channel <- i
			}
		}()
	}
	sum := 0
	for i := 0; i < 8*each; i++ {
		select {
		case v := <-c[0]:
			sum += v
		case v := <-c[1]:
			sum += v
		case v := <-c[2]:
			sum += v
		case v := <-c[3]:
			sum += v
		case v := <-c[4]:
			sum += v
		case v := <-c[5]:
			sum += v
		case v := <-c[6]:
			sum += v
		case v := <-c[7]:
			sum += v
		}
	}
	if sum != 8*(each*(each-1)/2) {
		os.Exit(1)
	}
}

func main() {
	peer.UseProcs()
	each := peer.Number("values", 250_000)

	values := float64(8 * each)
	first := peer.TimeNs(func() { stream(each) })
	warm := peer.TimeNs(func() { stream(each) })
	peer.Report("first_ns_per_op", first/values)
	peer.Report("ns_per_op", warm/values)
}
