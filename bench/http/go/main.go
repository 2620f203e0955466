// The server of the HTTP benchmarks, see ../magpie.cc.
package main

import (
	"fmt"
	"net"
	"net/http"

	"magpie.bench/support/peer"
)

func hasHogs() bool { return peer.Number("hogs", 1000000) != 1000000 }

func main() {
	peer.UseProcs()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("port=%d\n", listener.Addr().(*net.TCPAddr).Port)
	if hasHogs() {
		for i := 0; i < peer.Number("hogs", 0); i++ {
			go func() {
				for turns := 0; ; turns++ {
				}
			}()
		}
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write([]byte("hello, world\n"))
	})
	http.Serve(listener, nil)
}
