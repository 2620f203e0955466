// recorded.h: what `magpie lab measure --procs 1 --runs 200` printed on 18 November 2026, on two
// busy virtual CPUs: only runs whose threads did not wait for a CPU count. Rows for 2 and 4 Ps need
// an idle machine, and `magpie lab measure --procs 1,2,4 --runs 200`.
#pragma once

namespace magpie::lab {

inline constexpr const char* kRecorded =
    "costs pop=5 switch=18 spawn=1 ready=9 probe=28 steal=84 miss=56 global=62 "
    "wake-call=4557 wake=10376 spin-round=796 timer=60\n"
    "real load=burst procs=1 cpus=2 count=400 work=5000 clean=44 runs=200 "
    "time=2071364 p50=1039192 p99=2035611\n"
    "real load=fork-join procs=1 cpus=2 count=256 work=4000 clean=102 runs=200 "
    "time=1129065 p50=420 p99=332454\n"
    "real load=ping-pong procs=1 cpus=2 count=200 work=1000 clean=114 runs=200 "
    "time=853697 p50=50 p99=90\n";

}  // namespace magpie::lab
