// tcp_echo: see magpie.cc beside it.
package main

import (
	"io"
	"net"
	"sync"

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

func talk(conn net.Conn, rounds int) {
	buffer := make([]byte, size)
	for i := 0; i < rounds; i++ {
		if _, err := conn.Write(buffer); err != nil {
			panic(err)
		}
		if _, err := io.ReadFull(conn, buffer); err != nil {
			panic(err)
		}
	}
}

func main() {
	peer.UseProcs()
	connections := peer.Number("connections", 64)
	rounds := peer.Number("rounds", 5000)

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
	all := func(count int) {
		var talking sync.WaitGroup
		for _, conn := range clients {
			conn := conn
			talking.Add(1)
			go func() {
				defer talking.Done()
				talk(conn, count)
			}()
		}
		talking.Wait()
	}
	all(rounds/10 + 1)
	cpuBefore := peer.CPUNs()
	wall := peer.TimeNs(func() { all(rounds) })
	used := peer.CPUNs() - cpuBefore
	trips := float64(connections * rounds)
	peer.Report("ns_per_op", wall/trips)
	peer.Report("cpu_ns_per_op", used/trips)
}
