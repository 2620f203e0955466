"""Tests of what bench/run parses, computes and prints."""

import json
import sys
import unittest
import xml.dom.minidom
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BENCH / "lib"))
import http_load  # noqa: E402
import measuring  # noqa: E402
import report  # noqa: E402
import svg  # noqa: E402
import workloads  # noqa: E402
from numbers_of_runs import judge, quartiles, round_ratios, spread_percent  # noqa: E402


def stored_run(steal=0.0, others=0.0, **results):
    return {"results": results, "rss_bytes": 2e6, "user_seconds": 1.0, "system_seconds": 0.5,
            "voluntary_switches": 10.0, "involuntary_switches": 10.0, "steal_percent": steal,
            "others_percent": others}


def stored_cell(name, procs, sides, parameters=None):
    return {"workload": name, "procs": procs, "parameters": parameters or {},
            "sides": {side: {"runs": runs, "repeated": 1, "syscalls_per_operation": 0.5}
                      for side, runs in sides.items()}}


def stored_result(*cells):
    return {"made": "2026-01-02 03:04 UTC", "commit": "abc", "against": "", "quick": False,
            "rounds": 3, "machine": {"cpus": 2, "model": "a CPU", "kernel": "6.1"},
            "versions": {"go": "1.19.8"}, "syscall_counter": "perf", "cells": list(cells)}


def yields(*values, cold=100.0, **disturbance):
    return [stored_run(ns_per_op=value, first_ns_per_op=cold, **disturbance) for value in values]


YIELDS = {"goroutines": 100, "yields": 1000}  # two rounds: 200,000 operations


class Parsing(unittest.TestCase):
    def test_results_are_the_lines_with_a_key_and_a_number(self):
        text = "ns_per_op=12.500\nhello\nrate=1e+06\nport=abc\n later=-3 \n"
        self.assertEqual(measuring.parse_results(text),
                         {"ns_per_op": 12.5, "rate": 1e6, "later": -3})

    def test_proc_stat_has_stolen_and_busy_time(self):
        stolen, busy = measuring.machine_seconds("cpu 100 10 50 9999 5 3 7 20 0 0\ncpu0 1\n")
        ticks = measuring.os.sysconf("SC_CLK_TCK")
        self.assertAlmostEqual(stolen, 20 / ticks)
        self.assertAlmostEqual(busy, 170 / ticks)

    def test_perf_and_strace_counts(self):
        self.assertEqual(measuring.parse_perf("# started\n\n123,,raw_syscalls:sys_enter,9,100\n"),
                         123)
        self.assertIsNone(measuring.parse_perf("<not counted>,,raw_syscalls:sys_enter,0,0\n"))
        table = "  1.00 0.1 2 5 1 read\n100.00    0.000123           4        29         1 total\n"
        self.assertEqual(measuring.parse_strace(table), 29)
        self.assertEqual(measuring.parse_strace("100.00  0.000123   4   29           total\n"), 29)
        self.assertIsNone(measuring.parse_strace("nothing\n"))

    def test_wrk(self):
        text = ("  Latency Distribution\n     50%    0.50ms\n     99%    1.25ms\n"
                "  200123 requests in 2.00s, 20MB read\nRequests/sec: 100061.50\n")
        self.assertEqual(http_load.parse_wrk(text), (200123, 100061.5, 1.25))
        with self.assertRaises(measuring.Failed):
            http_load.parse_wrk(text + "  Socket errors: connect 1\n")
        self.assertEqual(http_load.in_milliseconds("250.00us"), 0.25)


class Disturbance(unittest.TestCase):
    def run_of(self, steal, others):
        return measuring.Run({}, 0, 0, 0, 0, 0, steal, others)

    def test_a_run_that_lost_cpu_time_is_repeated_until_one_did_not(self):
        runs = iter([self.run_of(6, 0), self.run_of(0, 11), self.run_of(5, 10)])
        run, repeated = measuring.undisturbed(lambda: next(runs), 5)
        self.assertEqual((run.steal_percent, repeated), (5, 2))

    def test_the_last_attempt_counts_as_it_is(self):
        run, repeated = measuring.undisturbed(lambda: self.run_of(50, 0), 2)
        self.assertTrue(run.disturbed())
        self.assertEqual(repeated, 2)

    def test_a_process_tells_what_it_used_and_a_failure_is_told(self):
        if not Path("/bin/sh").exists():
            self.skipTest("no shell")
        # In the place of bench_launch a script that does the same.
        launcher = BENCH / "tests/launch.sh"
        run = measuring.run_once(launcher, ["/bin/sh", "-c", "echo x=3"])
        self.assertEqual(run.results, {"x": 3})
        self.assertEqual(run.rss_bytes, 4096)
        with self.assertRaisesRegex(measuring.Failed, "ended with 7: sorry"):
            measuring.run_once(launcher, ["/bin/sh", "-c", "echo sorry >&2; exit 7"])


class Statistics(unittest.TestCase):
    def test_spread_is_the_distance_of_the_quartiles(self):
        self.assertEqual(quartiles([1, 2, 3, 4, 5]), (2, 4))
        self.assertAlmostEqual(spread_percent([1, 2, 3, 4, 5]), 200 / 3)
        self.assertIsNone(spread_percent([1]))

    def test_ratios_are_taken_round_by_round(self):
        self.assertEqual(round_ratios([10, 20], [20, 60]), [2, 3])
        self.assertEqual(round_ratios([10, 20], [20, 60], smaller_is_better=False), [0.5, 1 / 3])
        self.assertEqual(round_ratios([10, None, 5], [20, 10, 5]), [2, 1])

    def test_a_clear_ratio_counts(self):
        self.assertEqual(judge([1.4, 1.5, 1.6]), (1.5, ""))

    def test_ratios_that_say_nothing_say_why(self):
        self.assertEqual(judge([1.5, 1.5])[1], "few")
        self.assertEqual(judge([0.9, 1.5, 2.9])[1], "noise")
        self.assertEqual(judge([0.95, 1.0, 1.1])[1], "tie")
        self.assertEqual(judge([1.5, 1.5, 1.5], disturbed_rounds=2)[1], "disturbed")
        self.assertEqual(judge([1.5, 1.5, 1.5], disturbed_rounds=1)[1], "")
        self.assertEqual(judge([]), (None, ""))


class Table(unittest.TestCase):
    def rows(self, sides):
        result = stored_result(stored_cell("yield", 2, sides, YIELDS))
        lines = report.table(result)
        return {line.split("|")[3].strip(): [word.strip() for word in line.split("|")[1:-1]]
                for line in lines[2:]}

    def test_a_row_has_median_spread_ratio_and_what_an_operation_used(self):
        rows = self.rows({"magpie": yields(10, 11, 12), "go": yields(22, 22, 22, cold=50.0),
                          "tokio": yields(40, 44, 48, cold=200.0)})
        self.assertEqual(rows["Magpie"],
                         ["yield", "2", "Magpie", "ns", "11", "9 %", "2.00×", "100", "0.50×", "2",
                          "5,000", "2,500", "< 0.001", "0.5"])
        self.assertEqual(rows["Go"][6], "1")
        self.assertEqual(rows["Tokio"][6], "0.50×")
        self.assertEqual(rows["Tokio"][8], "0.25×")

    def test_a_ratio_from_disturbed_rounds_is_not_shown_as_one(self):
        rows = self.rows({"magpie": yields(10, 10, 10, others=50.0), "go": yields(20, 20, 20)})
        self.assertEqual(rows["Magpie"][6], "disturbed (2.00–2.00)")

    def test_a_failed_side_is_named_and_counts_for_nothing(self):
        cell = stored_cell("yield", 2, {"magpie": yields(10, 10, 10), "go": []}, YIELDS)
        cell["sides"]["go"]["error"] = "go ended with 2"
        result = stored_result(cell)
        self.assertIn("FAILED yield, 2 procs, Go: go ended with 2",
                      "\n".join(report.conditions(result)))
        self.assertIn("failed", report.table(result)[3])

    def test_the_short_table_has_magpie_and_the_best_of_the_others(self):
        sides = {"magpie": yields(10, 11, 12), "go": yields(22, 22, 22, cold=50.0),
                 "tokio": yields(40, 44, 48, cold=200.0)}
        result = stored_result(stored_cell("yield", 2, sides, YIELDS))
        row = report.short_table(result)[2]
        self.assertEqual([word.strip() for word in row.split("|")[1:-1]],
                         ["yield", "2", "ns", "11", "22 (Go)", "2.00×", "0.50×"])

    def test_the_short_table_says_which_workload_failed(self):
        cell = stored_cell("yield", 2, {"magpie": [], "go": yields(10, 10, 10)}, YIELDS)
        cell["sides"]["magpie"]["error"] = "it ended with 2"
        self.assertIn("failed", report.short_table(stored_result(cell))[2])

    def test_of_rates_the_largest_is_best(self):
        runs = {side: [stored_run(requests_per_second=rate, first_per_second=1.0)] * 3
                for side, rate in (("magpie", 120.0), ("hyper", 100.0), ("nginx", 80.0))}
        cell = report.Cell(stored_cell("http_64", 2, runs))
        self.assertEqual(cell.best_peer("requests_per_second"), "hyper")
        self.assertAlmostEqual(cell.against("magpie", "hyper", "requests_per_second")[0], 1.2)


class Goals(unittest.TestCase):
    def met(self, ours, theirs, **more):
        sides = {"magpie": yields(*ours, **more), "tokio": yields(*theirs)}
        result = stored_result(stored_cell("chan_select", 2, sides, {"values": 1}))
        return [verdict.met for verdict in report.goals(result)]

    def test_a_goal_is_met_missed_or_open(self):
        self.assertEqual(self.met([10, 10, 10], [15, 15, 15]), ["yes"])
        self.assertEqual(self.met([10, 10, 10], [14, 14, 14]), ["no"])
        self.assertEqual(self.met([10, 10, 10], [15, 15, 15], steal=20.0), ["open"])

    def test_a_limit_that_was_missed_on_a_busy_machine_is_open(self):
        def met(value, others):
            runs = [stored_run(others=others, ns_per_op=value)] * 3
            return report.goals(stored_result(stored_cell("blocking_call", 1,
                                                          {"magpie": runs})))[0].met
        self.assertEqual([met(14, 0.0), met(14, 50.0), met(16, 0.0), met(16, 50.0)],
                         ["yes", "yes", "no", "open"])

    def test_what_is_behind_by_more_than_five_percent_is_listed(self):
        sides = {"magpie": yields(10.4, 10.4, 10.4), "go": yields(10, 10, 10, cold=10.0)}
        result = stored_result(stored_cell("yield", 1, sides, YIELDS))
        self.assertEqual([(key, peer) for _, key, peer, _ in report.behind(result)],
                         [("first_ns_per_op", "go")])
        self.assertIn("**yield** (1 proc, cold: 0.10 × Go).",
                      "\n".join(report.behind_in_words(result)))

    def test_what_is_behind_in_disturbed_rounds_is_not_judged(self):
        sides = {"magpie": yields(20, 20, 20, others=50.0), "go": yields(10, 10, 10)}
        result = stored_result(stored_cell("yield", 1, sides, YIELDS))
        self.assertEqual(report.behind(result), [])
        self.assertRegex("\n".join(report.behind_in_words(result)),
                         "Nothing of which the rounds are sure.*\n.*\n.*again: yield, 1 proc")


class Stored(unittest.TestCase):
    def test_a_result_is_stored_and_read_unchanged(self):
        result = stored_result(stored_cell("yield", 2, {"magpie": yields(10, 11)}, YIELDS))
        self.assertEqual(json.loads(report.compact_json(result)), result)

    def test_the_page_fills_the_template(self):
        result = stored_result(stored_cell("yield", 2, {"magpie": yields(10, 11)}, YIELDS))
        page = report.page("From {{file}}:\n{{short}}\n", result, "x.json")
        self.assertTrue(page.startswith("From x.json:\n| workload"))
        self.assertNotIn("{{", page)


class Workloads(unittest.TestCase):
    def test_each_has_a_program_of_ours_and_a_readme_that_names_its_peers(self):
        for workload in workloads.WORKLOADS:
            with self.subTest(workload.name):
                self.assertIn("magpie", workload.peers())
                readme = (workload.home() / "README.md").read_text()
                for peer in workload.peers():
                    self.assertIn(workloads.TITLES[peer], readme)

    def test_each_folder_is_measured(self):
        used = {workload.name_of_folder() for workload in workloads.WORKLOADS}
        there = {path.parent.name for path in (BENCH / "workloads").glob("*/magpie.cc")}
        self.assertEqual(there - used, set())

    def test_sizes_and_small_sizes_have_the_same_keys(self):
        for workload in workloads.WORKLOADS:
            if workload.operations:
                self.assertGreater(workload.operations(workload.parameters(quick=True)), 0)
                self.assertGreaterEqual(workload.operations(workload.parameters(quick=False)),
                                        workload.operations(workload.parameters(quick=True)))

    def test_cargo_knows_each_rust_program(self):
        manifest = (BENCH / "Cargo.toml").read_text()
        for source in (BENCH / "workloads").glob("*/tokio.rs"):
            self.assertIn(f'path = "workloads/{source.parent.name}/tokio.rs"', manifest)


class Plots(unittest.TestCase):
    def test_they_are_well_formed_and_have_all_points(self):
        text = svg.growth("a & b", "x", "y", {"<one>": [(10, 5), (1000, 7)], "two": [(10, 1)]})
        document = xml.dom.minidom.parseString(text)
        self.assertEqual(len(document.getElementsByTagName("circle")), 3)
        text = svg.bars("t", [("a", 2.0, "Go", True), ("b", 0.5, "Go, noise", False)])
        bars = xml.dom.minidom.parseString(text).getElementsByTagName("rect")
        self.assertEqual(len(bars), 3)  # the background, and one each
        self.assertEqual(bars[1].getAttribute("width"), bars[2].getAttribute("width"))
        self.assertEqual(bars[2].getAttribute("fill"), svg.UNSURE)


if __name__ == "__main__":
    unittest.main()
