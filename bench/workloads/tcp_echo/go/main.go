// tcp_echo: see magpie.cc beside it.
package main

import (
	"io"
	"net"
	"sort"
	"sync"
	"time"

	"magpie.bench/support/peer"
)

const size = 64

func echo(conn net.Conn) {
	buffer := make([]byte, size)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			conn.Close()
			return
		}
		if _, err := conn.Write(buffer[:n]); err != nil {
			panic(err)
		}
	}
}

// talk stores how long each round trip took.
func talk(conn net.Conn, took []int64) {
	buffer := make([]byte, size)
	for i := range took {
		start := time.Now()
		if _, err := conn.Write(buffer); err != nil {
			panic(err)
		}
		if _, err := io.ReadFull(conn, buffer); err != nil {
			panic(err)
		}
		took[i] = time.Since(start).Nanoseconds()
	}
}

func main() {
	peer.UseProcs()
	connections := peer.Number("connections", 64)
	rounds := peer.Number("rounds", 5000)

	start := time.Now()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	clients := make([]net.Conn, connections)
	for i := range clients {
		if clients[i], err = net.Dial("tcp", listener.Addr().String()); err != nil {
			panic(err)
		}
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go echo(conn)
	}
	took := make([]int64, connections*rounds)
	all := func(count int) {
		var talking sync.WaitGroup
		for i, conn := range clients {
			conn, mine := conn, took[i*count:(i+1)*count]
			talking.Add(1)
			go func() {
				defer talking.Done()
				talk(conn, mine)
			}()
		}
		talking.Wait()
	}
	few := rounds/10 + 1
	all(few)
	first := float64(time.Since(start).Nanoseconds())
	cpuBefore := peer.CPUNs()
	wall := peer.TimeNs(func() { all(rounds) })
	used := peer.CPUNs() - cpuBefore
	trips := float64(connections * rounds)
	peer.Report("first_ns_per_op", first/float64(connections*few))
	peer.Report("ns_per_op", wall/trips)
	peer.Report("cpu_ns_per_op", used/trips)
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	peer.Report("p99_us", float64(took[len(took)*99/100])/1e3)
}
