// Package peer is the Go twin of support/measure.h: `key=value` parameters in, `key=value` results
// out.
package peer

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Number returns the parameter key, or fallback where it was not given.
func Number(key string, fallback int) int {
	for _, arg := range os.Args[1:] {
		if !strings.HasPrefix(arg, key+"=") {
			continue
		}
		n, err := strconv.Atoi(arg[len(key)+1:])
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "%s must be a positive number, found %q\n", key, arg)
			os.Exit(2)
		}
		return n
	}
	return fallback
}

// UseProcs sets GOMAXPROCS to the parameter procs and returns it.
func UseProcs() int {
	procs := Number("procs", 1)
	runtime.GOMAXPROCS(procs)
	return procs
}

// Report prints one result.
func Report(key string, value float64) { fmt.Printf("%s=%.3f\n", key, value) }

// TimeNs returns how long f takes, in nanoseconds of wall time (Go's clock is monotonic).
func TimeNs(f func()) float64 {
	start := time.Now()
	f()
	return float64(time.Since(start).Nanoseconds())
}

// CPUNs returns the CPU time of this process so far, user and system.
func CPUNs() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano() + usage.Stime.Nano())
}

// ResidentBytes returns the memory of this process that is in RAM.
func ResidentBytes() int {
	text, _ := os.ReadFile("/proc/self/statm")
	pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
	return pages * os.Getpagesize()
}

// StatusBytes returns a field of /proc/self/status that is given in kB, such as VmPTE.
func StatusBytes(field string) int {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == field+":" {
			kb, _ := strconv.Atoi(words[1])
			return kb * 1024
		}
	}
	return 0
}

// BusyWork is bench::busy_work: a chain of dependent multiplications.
//
//go:noinline
func BusyWork(rounds int, seed uint64) uint64 {
	x := seed | 1
	for i := 0; i < rounds; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
