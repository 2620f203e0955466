"""Runs one program and says what it printed, what it used, and whether something disturbed it."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

# A run is disturbed, and repeated, if of the CPU time that the machine had meanwhile
STEAL_LIMIT_PERCENT = 5.0    # the host took more than this ("steal" in /proc/stat), or
OTHERS_LIMIT_PERCENT = 10.0  # other processes of this machine used more than this.
# Involuntary context switches are shown and do not judge: a program with more threads than CPUs
# makes them itself, and where another process makes them, that one's CPU time is seen above.
TIMEOUT_SECONDS = 180        # a benchmark that hangs is a failure, not a long wait


class Failed(Exception):
    """A program did not end well; the text says how."""


@dataclass
class Run:
    """One finished process."""
    results: dict             # what the program printed
    rss_bytes: float
    user_seconds: float
    system_seconds: float
    voluntary_switches: float
    involuntary_switches: float
    steal_percent: float      # of the CPU time of the machine: taken by the host
    others_percent: float     # used by other processes

    def disturbed(self):
        return (self.steal_percent > STEAL_LIMIT_PERCENT or
                self.others_percent > OTHERS_LIMIT_PERCENT)

    def as_json(self):
        return asdict(self)


def parse_results(text):
    """{key: number} of the lines `key=value`; other lines are not ours."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(\w+)=(-?[\d.]+(?:e[+-]?\d+)?)", line.strip())
        if match:
            found[match.group(1)] = float(match.group(2))
    return found


def machine_seconds(text=None):
    """(stolen, busy) CPU seconds of the whole machine since boot, from /proc/stat."""
    text = text if text is not None else Path("/proc/stat").read_text()
    fields = text.splitlines()[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(f) for f in fields[:8])
    ticks = os.sysconf("SC_CLK_TCK")
    return steal / ticks, (user + nice + system + irq + softirq) / ticks


class Watch:
    """What the machine did between start and stop, beside our own processes."""

    def __init__(self):
        self.start, (self.stolen, self.busy) = time.monotonic(), machine_seconds()

    def stop(self, own_seconds):
        """(steal percent, others percent) of the capacity since the start."""
        capacity = max(time.monotonic() - self.start, 1e-3) * os.cpu_count()
        stolen, busy = machine_seconds()
        # /proc/stat counts in ticks of 10 ms: less than two of them on each CPU is not known.
        unknown = 2 * os.cpu_count() / os.sysconf("SC_CLK_TCK")
        others = max(0.0, busy - self.busy - own_seconds - unknown)
        return 100 * (stolen - self.stolen) / capacity, 100 * others / capacity


def run_once(launcher, command):
    """Runs a program to its end."""
    with tempfile.TemporaryDirectory() as folder:
        used_file = Path(folder) / "used"
        watch = Watch()
        try:
            done = subprocess.run([str(launcher), str(used_file), *map(str, command)],
                                  capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"{Path(command[0]).name} did not end within {TIMEOUT_SECONDS} s")
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Failed(f"{Path(command[0]).name} ended with {done.returncode}: {last}")
        used = parse_results(used_file.read_text())
    steal, others = watch.stop(used["user_seconds"] + used["system_seconds"])
    return Run(parse_results(done.stdout), used["rss_bytes"], used["user_seconds"],
               used["system_seconds"], used["voluntary_switches"], used["involuntary_switches"],
               steal, others)


def undisturbed(measure, retries):
    """(the run that counts, how many were thrown away). The last attempt counts as it is."""
    for attempt in range(retries + 1):
        run = measure()
        if not run.disturbed():
            return run, attempt
    return run, retries


# ---- system calls, counted in a run of their own: counting costs time

def parse_perf(text):
    """The count of `perf stat -x,`, or None."""
    match = re.search(r"^(\d+),[^,]*,raw_syscalls:sys_enter", text, re.MULTILINE)
    return int(match.group(1)) if match else None


def parse_strace(text):
    """The sum of `strace -c`, or None."""
    match = re.search(r"^100\.00\s+[\d.]+\s+(?:\d+\s+)?(\d+)\s+(?:\d+\s+)?total$", text,
                      re.MULTILINE)
    return int(match.group(1)) if match else None


def count_with(tool, command):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        prefix = {"perf": ["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "-o", out, "--"],
                  "strace": ["strace", "-f", "-c", "-o", out]}[tool]
        try:
            done = subprocess.run([*map(str, prefix), *map(str, command)], capture_output=True,
                                  timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0 or not out.exists():
            return None
        return {"perf": parse_perf, "strace": parse_strace}[tool](out.read_text())


def syscall_counter():
    """"perf", "strace", or "" where neither may count here."""
    for tool in ("perf", "strace"):
        if shutil.which(tool) and count_with(tool, [shutil.which("true")]) is not None:
            return tool
    return ""
