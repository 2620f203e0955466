"""Tables, goals and pages, made from a stored result: the JSON that bench/run writes."""

import json
import re
import textwrap
from dataclasses import dataclass

from measuring import OTHERS_LIMIT_PERCENT, STEAL_LIMIT_PERCENT
from numbers_of_runs import best, judge, median, quartiles, round_ratios, spread_percent
from workloads import TITLES, by_name

BEHIND = 0.95  # a ratio below this needs a paragraph that says what bounds it


# ---------------------------------------------------------------- the stored result

class Cell:
    """One workload at one number of procs, as stored."""

    def __init__(self, stored):
        self.workload = by_name(stored["workload"])
        self.procs = stored["procs"]
        self.sides = stored["sides"]
        self.parameters = stored["parameters"]

    def title(self):
        return f"{self.workload.name}, {self.procs} proc{'s' if self.procs > 1 else ''}"

    def runs(self, side):
        return self.sides.get(side, {}).get("runs", [])

    def values(self, side, key):
        """One for each round; None where the program did not print it."""
        return [run["results"].get(key) for run in self.runs(side)]

    def known(self, side, key):
        return [value for value in self.values(side, key) if value is not None]

    def median(self, side, key):
        return median(self.known(side, key))

    def peers(self):
        return [side for side in self.sides if side not in ("magpie", "before")]

    def best_peer(self, key, peers=None):
        medians = {side: self.median(side, key) for side in peers or self.peers()}
        return best(medians, self.smaller_is_better(key))

    def smaller_is_better(self, key):
        """Rates and shares are better when larger; all other keys are times, bytes or counts."""
        return not key.endswith(("per_second", "percent_of_ideal"))

    def disturbed_rounds(self, *sides):
        """Rounds in which one of these programs was disturbed and counts all the same."""
        rounds = zip(*(self.runs(side) for side in sides))
        return sum(any(is_disturbed(run) for run in runs) for runs in rounds)

    def against(self, side, other, key):
        """(ratio, verdict, ratios of the rounds): how many times better `side` is."""
        ratios = round_ratios(self.values(side, key), self.values(other, key),
                              self.smaller_is_better(key))
        return (*judge(ratios, self.disturbed_rounds(side, other)), ratios)

    def per_operation(self, side, field):
        """The median of what a process used, divided by its operations; None where unknown."""
        found = []
        for run in self.runs(side):
            operations = run["results"].get("operations")
            if operations is None and self.workload.operations:
                operations = self.workload.operations(self.parameters)
            if operations:
                found.append(sum(run[name] for name in field) / operations)
        return median(found)


def is_disturbed(run):
    return (run["steal_percent"] > STEAL_LIMIT_PERCENT or
            run["others_percent"] > OTHERS_LIMIT_PERCENT)


def cells_of(result):
    return [Cell(stored) for stored in result["cells"]]


def compact_json(result):
    """A line for each run, so that a stored result can be read and compared."""
    head = {key: value for key, value in result.items() if key != "cells"}
    text = json.dumps(head, indent=1, ensure_ascii=False)[:-2] + ',\n "cells": [\n'
    cells = []
    for cell in result["cells"]:
        sides = []
        for name, side in cell["sides"].items():
            runs = ",\n".join("     " + json.dumps(rounded(run)) for run in side["runs"])
            rest = {key: rounded(value) for key, value in side.items() if key != "runs"}
            sides.append(f"   {json.dumps(name)}: {json.dumps(rest)[:-1]}"
                         f"{', ' if rest else ''}\"runs\": [\n{runs}]}}")
        rest = {key: value for key, value in cell.items() if key != "sides"}
        cells.append(f"  {json.dumps(rest)[:-1]}, \"sides\": {{\n" + ",\n".join(sides) + "}}")
    return text + ",\n".join(cells) + "]}\n"


def rounded(value):
    """Five digits: more are noise."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return value


# ---------------------------------------------------------------- words

def number(value):
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if abs(value) < 0.001:
        return "< 0.001"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def ratio_in_words(ratio, verdict, ratios):
    """A ratio that says nothing is not shown as one."""
    if ratio is None:
        return "–"
    if verdict in ("noise", "disturbed"):
        first, third = quartiles(ratios)
        return f"{verdict} ({first:.2f}–{third:.2f})"
    return f"{ratio:.2f}×" + (f" ({verdict})" if verdict else "")


def markdown_table(headings, rows):
    """A Markdown table that is also readable as plain text."""
    rows = [headings] + rows
    widths = [max(len(row[i]) for row in rows) for i in range(len(headings))]
    lines = ["| " + " | ".join(word.ljust(width) for word, width in zip(row, widths)) + " |"
             for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines


# ---------------------------------------------------------------- the table

HEADINGS = ["workload", "procs", "program", "unit", "median", "spread", "× best peer", "cold",
            "× best peer, cold", "peak MB", "user ns/op", "system ns/op", "switches/op",
            "calls/op"]


def scaled(value, factor):
    return value * factor if value is not None else None


def ratio_to_best_peer(cell, side, key):
    """Of Magpie round by round, with its verdict; of a peer the ratio of the medians."""
    rival = cell.best_peer(key)
    if not key or rival is None or side == rival or cell.median(side, key) is None:
        return "1" if side == rival and key else "–"
    if side in ("magpie", "before"):
        return ratio_in_words(*cell.against(side, rival, key))
    ours, theirs = cell.median(side, key), cell.median(rival, key)
    if not ours or not theirs:
        return "–"
    return f"{theirs / ours if cell.smaller_is_better(key) else ours / theirs:.2f}×"


def row(cell, side):
    workload, stored = cell.workload, cell.sides[side]
    spread = spread_percent(cell.known(side, workload.result))
    used = [scaled(cell.per_operation(side, fields), factor) for fields, factor in
            ((("user_seconds",), 1e9), (("system_seconds",), 1e9),
             (("voluntary_switches", "involuntary_switches"), 1))]
    memory = median([run["rss_bytes"] for run in cell.runs(side)])
    return [workload.name, str(cell.procs), TITLES[side], workload.unit,
            number(cell.median(side, workload.result)) if not stored.get("error") else "failed",
            f"{spread:.0f} %" if spread is not None else "–",
            ratio_to_best_peer(cell, side, workload.result),
            number(cell.median(side, workload.cold)) if workload.cold else "–",
            ratio_to_best_peer(cell, side, workload.cold),
            number(scaled(memory, 1e-6)), *(number(value) for value in used),
            number(stored.get("syscalls_per_operation"))]


def table(result):
    return markdown_table(HEADINGS, [row(cell, side) for cell in cells_of(result)
                                     for side in cell.sides])


def short_row(cell):
    key, cold = cell.workload.result, cell.workload.cold
    rival = cell.best_peer(key)
    best_of_others = (f"{number(cell.median(rival, key))} ({TITLES[rival]})"
                      if rival is not None else "–")
    failed = cell.sides.get("magpie", {}).get("error")
    ours = cell.median("magpie", key) if not failed else None
    return [cell.workload.name, str(cell.procs), cell.workload.unit,
            number(ours) if not failed else "failed", best_of_others,
            ratio_to_best_peer(cell, "magpie", key), ratio_to_best_peer(cell, "magpie", cold)]


def short_table(result):
    """A row for each workload at each number of procs: Magpie and the best of the others."""
    headings = ["workload", "procs", "unit", "Magpie", "best peer", "× best peer", "cold"]
    return markdown_table(headings, [short_row(cell) for cell in cells_of(result)])


def further(result):
    """A line for each workload that has more to say than the table."""
    lines = []
    for cell in cells_of(result):
        for key in cell.workload.also:
            parts = [f"{TITLES[side]} {number(cell.median(side, key))}" for side in cell.sides
                     if cell.median(side, key) is not None]
            if parts:
                lines.append(f"- {cell.title()}: {key}: {', '.join(parts)}")
    return lines


# ---------------------------------------------------------------- goals, and what is behind

@dataclass
class Verdict:
    cell: Cell
    goal: object
    reached: str   # in words
    met: str       # "yes", "no", "open", or "failed"


def judge_goal(cell, goal):
    key = goal.key or cell.workload.result
    ours = cell.median("magpie", key)
    if ours is None:
        return Verdict(cell, goal, "–", "failed")
    if goal.peer:
        if cell.median(goal.peer, key) is None:
            return Verdict(cell, goal, f"no {TITLES[goal.peer]} here", "open")
        ratio, verdict, ratios = cell.against("magpie", goal.peer, key)
        words = ratio_in_words(ratio, verdict, ratios)
        if verdict in ("noise", "disturbed", "few"):
            return Verdict(cell, goal, words, "open")
        return Verdict(cell, goal, words, "yes" if ratio >= goal.factor else "no")
    met = ours <= goal.at_most if goal.at_most is not None else ours >= goal.at_least
    if not met and 2 * cell.disturbed_rounds("magpie") >= len(cell.runs("magpie")):
        return Verdict(cell, goal, f"{number(ours)}, disturbed", "open")
    return Verdict(cell, goal, number(ours), "yes" if met else "no")


def goal_in_words(goal):
    if goal.peer:
        return f"≥ {goal.factor:g} × {TITLES[goal.peer]}"
    return f"≤ {goal.at_most:g}" if goal.at_most is not None else f"≥ {goal.at_least:g}"


def goals(result):
    found = []
    for cell in cells_of(result):
        for goal in cell.workload.goals:
            if not goal.procs or cell.procs in goal.procs:
                found.append(judge_goal(cell, goal))
    return found


def goals_in_words(result):
    found = goals(result)
    met = sum(verdict.met == "yes" for verdict in found)
    is_open = sum(verdict.met == "open" for verdict in found)
    return [f"{met} of {len(found)} goals are met; {is_open} are open, as the rounds do not agree "
            "or were disturbed. The tables of the series have all of them."]


def goals_table(result, only=("yes", "no", "open", "failed")):
    found = [verdict for verdict in goals(result) if verdict.met in only]
    if not found:
        return []
    rows = [[v.cell.workload.name, str(v.cell.procs), v.goal.key or v.cell.workload.result,
             goal_in_words(v.goal), v.reached, v.met if v.met != "no" else "**no**"]
            for v in found]
    return markdown_table(["workload", "procs", "of", "goal", "reached", "met"], rows)


def behind(result, verdicts=("",)):
    """[(cell, key, peer, ratio)]: where a peer is ahead by more than 5 %, warm or cold, and the
    verdict on the ratio is one of these."""
    found = []
    for cell in cells_of(result):
        for key in dict.fromkeys([cell.workload.result, cell.workload.cold]):
            rival = cell.best_peer(key) if key else None
            if rival is None:
                continue
            ratio, verdict, _ = cell.against("magpie", rival, key)
            if ratio is not None and ratio < BEHIND and verdict in verdicts:
                found.append((cell, key, rival, ratio))
    return found


def what_bounds(workload):
    """The paragraph of the workload's README, or ""."""
    readme = workload.home() / "README.md"
    if not readme.exists():
        return ""
    match = re.search(r"^## What bounds it\n+(.*?)(?=^## |\Z)", readme.read_text(),
                      re.MULTILINE | re.DOTALL)
    return match.group(1).strip() if match else ""


def behind_in_words(result):
    lines, cells = [], {}
    for cell, key, rival, ratio in behind(result):
        cells.setdefault(cell.workload.name, []).append((cell, key, rival, ratio))
    for name, places in cells.items():
        where = "; ".join(f"{cell.procs} proc{'s' if cell.procs > 1 else ''}"
                          f"{', cold' if key == cell.workload.cold else ''}: "
                          f"{ratio:.2f} × {TITLES[rival]}" for cell, key, rival, ratio in places)
        text = what_bounds(by_name(name)) or "Not looked into yet."
        lines += [f"**{name}** ({where}). {' '.join(text.split())}", ""]
    unclear = dict.fromkeys(cell.title() for cell, _, _, _ in
                            behind(result, ("disturbed", "few", "noise")))
    if not lines:
        lines = ["Nothing of which the rounds are sure." if unclear else "Nothing.", ""]
    if unclear:
        lines += ["Behind in the median, while the rounds were disturbed, few or did not agree, "
                  f"so that it has to be measured again: {'; '.join(unclear)}.", ""]
    return lines


# ---------------------------------------------------------------- conditions

def conditions(result):
    machine, versions = result["machine"], result["versions"]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [f"- {result['made']}, commit {result['commit']}"
             f"{', small sizes (--quick)' if result['quick'] else ''}; at most "
             f"{result['rounds']} rounds, in each of which the programs take turns",
             f"- {machine['cpus']} CPUs, {machine['model']}, Linux {machine['kernel']}",
             f"- {named}"]
    if result.get("against"):
        lines.append(f"- before: the library of {result['against']}")
    sides = [side for cell in result["cells"] for side in cell["sides"].values()]
    runs = [run for side in sides for run in side["runs"]]
    kept = sum(is_disturbed(run) for run in runs)
    lines.append(f"- {len(runs)} runs count; {sum(side['repeated'] for side in sides)} more were "
                 f"disturbed (the host took more than {STEAL_LIMIT_PERCENT:g} % of the CPU time, "
                 f"or other processes used more than {OTHERS_LIMIT_PERCENT:g} %) and repeated; "
                 f"{kept} count although they were disturbed again each time")
    if runs and 2 * kept > len(runs):
        lines.append("- **ROUGH**: most runs were disturbed. Measure again on a quiet machine "
                     "before you believe a figure.")
    counter = result["syscall_counter"]
    lines.append(f"- system calls are counted by {counter}, in a run of their own" if counter else
                 "- system calls: not available, neither perf nor strace may count here")
    for cell in cells_of(result):
        for side in cell.sides:
            if cell.sides[side].get("error"):
                lines.append(f"- FAILED {cell.title()}, {TITLES[side]}: "
                             f"{cell.sides[side]['error']}")
    return lines


def beside_before(result):
    lines = []
    for cell in cells_of(result):
        if cell.runs("before") and cell.runs("magpie"):
            parts = [f"{key} {ratio_in_words(*cell.against('magpie', 'before', key))}"
                     for key in dict.fromkeys([cell.workload.result, cell.workload.cold]) if key]
            lines.append(f"- {cell.title()}: {', '.join(parts)}")
    return ["How many times better than the version before:", ""] + lines if lines else []


def report(result):
    """What bench/run prints."""
    parts = [table(result), further(result), beside_before(result), goals_table(result),
             conditions(result)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


# ---------------------------------------------------------------- docs/benchmarks.md

def wrapped(lines):
    """Lines of at most 100 columns; rows of tables stay whole."""
    made = []
    for line in lines:
        if line.startswith("|") or not line:
            made.append(line)
        else:
            indent = "  " if line.startswith("- ") else ""
            made += textwrap.wrap(line, 100, subsequent_indent=indent, break_long_words=False,
                                  break_on_hyphens=False)
    return made


def page(template, result, file_name):
    """The page: a template in which {{name}} stands for what is made from the result."""
    made = {"file": [file_name], "series": [file_name.removesuffix(".json") + ".md"],
            "conditions": conditions(result), "short": short_table(result),
            "goals": goals_in_words(result), "missed": goals_table(result, ("no", "failed")),
            "behind": behind_in_words(result)[:-1]}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: "\n".join(wrapped(made[match.group(1)])),
                  template)


def series(result, file_name):
    """Everything that was measured, for bench/results: the page says what it means."""
    name = file_name.removesuffix(".json")
    lines = [f"# {name}: every program", "",
             f"<!-- Made by `bench/run --page` from bench/results/{file_name}. -->", "",
             "What the columns mean is in [bench/README.md](../README.md).", "",
             *conditions(result), "", *table(result), "", *further(result), "", "## Goals", "",
             *goals_table(result)]
    return "\n".join(wrapped(lines)) + "\n"
