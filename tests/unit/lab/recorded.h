// recorded.h: what `chrt -f 10 magpie lab measure --procs 1,2,4 --runs 600` printed on 19 November
// 2026, on two virtual CPUs. The machine was busy. With a real-time policy other programs have a
// CPU only when no thread of the runtime wants it; with 1 and 2 Ps nearly all runs had their CPUs.
// bench/lab/page reads it too.
#pragma once

namespace magpie::lab {

inline constexpr const char* kRecorded =
    "costs pop=4 switch=14 spawn=4 ready=9 probe=34 steal=102 miss=68 global=78 "
    "wake-call=6049 wake=11217 spin-round=738 timer=60\n"
    "real load=burst procs=1 cpus=2 count=400 work=5000 clean=600 runs=600 "
    "time=2033323 p50=1016065 p99=2000904\n"
    "real load=burst procs=2 cpus=2 count=400 work=5000 clean=585 runs=600 "
    "time=1051258 p50=516821 p99=1016596\n"
    "real load=burst procs=4 cpus=2 count=400 work=5000 clean=600 runs=600 "
    "time=1063921 p50=521989 p99=1027668\n"
    "real load=fork-join procs=1 cpus=2 count=256 work=4000 clean=600 runs=600 "
    "time=1105168 p50=431 p99=332456\n"
    "real load=fork-join procs=2 cpus=2 count=256 work=4000 clean=558 runs=600 "
    "time=576916 p50=611 p99=188862\n"
    "real load=fork-join procs=4 cpus=2 count=256 work=4000 clean=600 runs=600 "
    "time=568227 p50=501 p99=189092\n"
    "real load=ping-pong procs=1 cpus=2 count=200 work=1000 clean=600 runs=600 "
    "time=833203 p50=50 p99=70\n"
    "real load=ping-pong procs=2 cpus=2 count=200 work=1000 clean=548 runs=600 "
    "time=864239 p50=50 p99=190\n"
    "real load=ping-pong procs=4 cpus=2 count=200 work=1000 clean=600 runs=600 "
    "time=1705809 p50=50 p99=90\n";

}  // namespace magpie::lab
