"""What bench/run measures: the workloads, their sizes, and what they have to reach."""

from dataclasses import dataclass, field
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent

# The peers in the order of the tables, by the name of the source that a workload has of each.
SOURCES = {"magpie": "magpie.cc", "go": "go/main.go", "tokio": "tokio.rs", "fiber": "fiber.cc",
           "tbb": "tbb.cc"}
TITLES = {"magpie": "Magpie", "before": "before", "go": "Go", "tokio": "Tokio",
          "fiber": "Boost.Fiber", "tbb": "oneTBB", "hyper": "hyper", "nginx": "nginx"}


@dataclass
class Goal:
    """`factor` times better than the peer; or, without a peer, at most or at least `limit`."""
    peer: str = ""
    factor: float = 1.0
    at_most: float | None = None
    at_least: float | None = None
    procs: tuple = ()            # all, unless given
    key: str = ""                # the workload's result, unless given


@dataclass
class Workload:
    name: str
    result: str                                  # the key that counts
    unit: str
    sizes: dict = field(default_factory=dict)    # parameters
    quick: dict = field(default_factory=dict)    # the same, smaller
    cold: str = ""                               # the key of the cold figure
    also: tuple = ()                             # further keys worth a line
    procs: tuple = (1, 2)
    folder: str = ""                             # workloads/<folder>; the name unless given
    borrowed: dict = field(default_factory=dict)  # peer: the folder that has its program
    operations: object = None                    # (parameters) -> operations of a whole process
    goals: list = field(default_factory=list)
    rounds: int | None = None                    # fewer, where one is long or exact
    zero: tuple = ()                             # keys of ours that must be 0
    http_connections: int = 0                    # not 0: a server, measured by wrk

    def home(self):
        return BENCH / ("http" if self.http_connections else f"workloads/{self.name_of_folder()}")

    def name_of_folder(self):
        return self.folder or self.name

    def folder_of(self, peer):
        return self.borrowed.get(peer, self.name_of_folder())

    def peers(self):
        """Whose programs there are."""
        if self.http_connections:
            return ["magpie", "go", "hyper", "nginx"]
        return [peer for peer, source in SOURCES.items()
                if (BENCH / "workloads" / self.folder_of(peer) / source).exists()]

    def parameters(self, quick):
        return {**self.sizes, **(self.quick if quick else {})}


def product(*keys, rounds=2):
    """Operations of a process: the product of parameters, in a cold and a warm round."""
    def count(parameters):
        total = rounds
        for key in keys:
            total *= parameters[key]
        return total
    return count


FIRST = "first_ns_per_op"
HTTP_GOALS = [Goal("hyper", 1.05), Goal("nginx", 1.05),
              Goal("hyper", 1, key="p99_ms"), Goal("nginx", 1, key="p99_ms")]

WORKLOADS = [
    Workload("spawn_join", "ns_per_op", "ns", {"goroutines": 1000000}, {"goroutines": 200000},
             cold=FIRST, operations=product("goroutines"),
             goals=[Goal("go", 5, procs=(2,)), Goal("tokio", 5, procs=(2,)),
                    Goal("go", 3, key=FIRST), Goal("tokio", 3, key=FIRST)]),
    Workload("spawn_handles", "ns_per_op", "ns", {"goroutines": 1000000}, {"goroutines": 200000},
             cold=FIRST, operations=product("goroutines"),
             borrowed={"go": "spawn_join", "tokio": "spawn_join", "tbb": "spawn_join"}),
    Workload("yield", "ns_per_op", "ns", {"goroutines": 100, "yields": 100000}, {"yields": 20000},
             cold=FIRST, operations=product("goroutines", "yields")),
    Workload("mutex", "ns_per_op", "ns", {"goroutines": 8, "rounds": 1000000}, {"rounds": 200000},
             cold=FIRST, operations=product("goroutines", "rounds")),
    Workload("mutex_alone", "ns_per_op", "ns", {"goroutines": 1, "rounds": 10000000},
             {"rounds": 2000000}, procs=(1,), folder="mutex", cold=FIRST,
             operations=product("goroutines", "rounds")),
    Workload("rw_mutex", "ns_per_op", "ns", {"goroutines": 8, "rounds": 1000000},
             {"rounds": 200000}, cold=FIRST, operations=product("goroutines", "rounds"),
             goals=[Goal("go", 1.2)]),
    Workload("rw_mutex_writing", "ns_per_op", "ns",
             {"write_every": 10, "goroutines": 8, "rounds": 1000000}, {"rounds": 200000},
             folder="rw_mutex", cold=FIRST, operations=product("goroutines", "rounds")),
    Workload("chan_pingpong", "ns_per_op", "ns", {"rounds": 1000000}, {"rounds": 200000},
             cold=FIRST, operations=product("rounds"),
             goals=[Goal("tokio", 2), Goal("go", 4, procs=(1,))]),
    Workload("chan_buffered", "ns_per_op", "ns", {"values": 5000000}, {"values": 1000000},
             cold=FIRST, operations=product("values")),
    Workload("chan_many", "ns_per_op", "ns", {"values": 200000}, {"values": 50000},
             cold=FIRST, operations=product("values", rounds=16)),
    Workload("chan_many_4_procs", "ns_per_op", "ns", {"values": 200000}, {"values": 50000},
             procs=(4,), folder="chan_many", cold=FIRST, operations=product("values", rounds=16)),
    Workload("chan_select", "ns_per_op", "ns", {"values": 250000}, {"values": 25000},
             cold=FIRST, operations=product("values", rounds=16), goals=[Goal("tokio", 1.5)]),
    Workload("skynet", "ms", "ms", {"leaves": 1000000}, {"leaves": 100000}, cold="first_ms",
             operations=product("leaves"),
             borrowed={"tokio": "skynet_channels"}),
    Workload("skynet_channels", "ms", "ms", {"leaves": 1000000}, {"leaves": 100000},
             cold="first_ms", operations=product("leaves"), borrowed={"go": "skynet"},
             goals=[Goal("go", 5)]),
    Workload("fib", "ms", "ms", {"n": 30}, {"n": 25}, cold="first_ms"),
    Workload("parallel_for", "ms", "ms", {"elements": 10000000}, {"elements": 1000000},
             cold="first_ms", also=("us_of_100000", "us_of_1000"),
             goals=[Goal("tbb", 1), Goal("tbb", 1, key="us_of_100000"),
                    Goal("tbb", 1, key="us_of_1000")]),
    Workload("parallel_reduce", "ms", "ms", {"elements": 10000000}, {"elements": 1000000},
             cold="first_ms", goals=[Goal("tbb", 1)]),
    Workload("park_many", FIRST, "ns", {"goroutines": 1000000}, {"goroutines": 200000}, cold=FIRST,
             also=("first_wake_ns_per_op",), operations=product("goroutines", rounds=1),
             goals=[Goal(at_most=1500)]),
    Workload("sleepers", "mean_late_us", "us late", {"goroutines": 100000}, {"goroutines": 20000},
             procs=(2,), cold="first_mean_late_us", also=("max_late_us", "cpu_ms", "first_cpu_ms"),
             operations=product("goroutines"), rounds=5,
             goals=[Goal("tokio", 1, key="first_mean_late_us"),
                    Goal("go", 1, key="first_cpu_ms")]),
    Workload("timer_stop", "ns_per_op", "ns", {"timers": 1000000}, {"timers": 200000}, procs=(1,),
             cold=FIRST, also=("ns_per_op_beside_others",),
             operations=product("timers", rounds=3)),
    Workload("tcp_echo", "ns_per_op", "ns", {"connections": 64, "rounds": 5000}, {"rounds": 1000},
             cold=FIRST, also=("cpu_ns_per_op", "p99_us"),
             operations=lambda p: p["connections"] * (p["rounds"] + p["rounds"] // 10 + 1),
             goals=[Goal("tokio", 1.05, procs=(2,)), Goal("tokio", 1, procs=(2,), key="p99_us")]),
    Workload("http_64", "requests_per_second", "requests/s", procs=(2,), cold="first_per_second",
             also=("p99_ms",), http_connections=64, goals=HTTP_GOALS),
    Workload("http_1000", "requests_per_second", "requests/s", procs=(2,),
             cold="first_per_second", also=("p99_ms",), http_connections=1000,
             goals=HTTP_GOALS),
    Workload("balance", "percent_of_ideal", "% of ideal", {"goroutines": 1000},
             {"goroutines": 300}, procs=(2,), also=("threads_percent_of_ideal",),
             goals=[Goal(at_least=95)]),
    Workload("hogs", "p99_late_ms", "ms late at p99", {"milliseconds": 3000},
             {"milliseconds": 500}, procs=(2,), rounds=3,
             also=("median_late_ms", "max_late_ms", "least_share_percent"),
             goals=[Goal(at_most=4)]),
    Workload("blocking", "ms", "ms", {}, {"calls": 50}, procs=(2,), rounds=3,
             also=("counters_percent", "counters_cpu_percent", "longest_stop_ms"),
             goals=[Goal(at_most=260)]),
    Workload("blocking_undeclared", "ms", "ms", {"raw": 1}, {"calls": 50}, procs=(2,),
             folder="blocking", rounds=3, also=("counters_percent", "longest_stop_ms"),
             goals=[Goal(at_most=2000)]),
    Workload("blocking_call", "ns_per_op", "ns", {}, {"rounds": 1000000}, procs=(1,),
             goals=[Goal(at_most=15)]),
    Workload("memory_spawned", "bytes_each", "B", {"goroutines": 1000000}, {"goroutines": 200000},
             procs=(1,), rounds=3, also=("bytes_each_with_page_tables",), zero=("ran_early",),
             operations=product("goroutines", rounds=1), goals=[Goal(at_most=200)]),
    Workload("memory_parked", "bytes_each", "B", {"goroutines": 1000000}, {"goroutines": 200000},
             procs=(2,), rounds=3, also=("bytes_each_with_page_tables", "mappings"),
             operations=product("goroutines", rounds=1), goals=[Goal(at_most=4700)]),
    Workload("cpu_bound", "percent_of_ideal", "% of ideal", {"goroutines": 1000},
             {"goroutines": 50}, procs=(2,), rounds=1,
             also=("ms", "threads", "most_runnable", "percent_of_looks_beyond_procs_and_one",
                   "preemptions"), goals=[Goal(at_least=90)]),
    Workload("idle", "switches", "switches in 10 s", {"seconds": 10}, {"seconds": 2}, procs=(2,),
             rounds=1, also=("threads",), goals=[Goal(at_most=0)]),
    Workload("idle_main_blocked", "switches", "switches in 10 s",
             {"main": "blocked", "seconds": 10}, {"seconds": 2}, procs=(2,), folder="idle",
             rounds=1, also=("threads",), goals=[Goal(at_most=0)]),
    Workload("alloc", "allocations", "calls in 10,000 go()", rounds=3, procs=(2,),
             also=("new_calls", "malloc_calls", "mmap_calls"), goals=[Goal(at_most=0)]),
]


def by_name(name):
    return next(workload for workload in WORKLOADS if workload.name == name)
