"""Counts instructions with callgrind: starts a program under it and reads what it writes.

The program says what is counted, by callgrind's client requests: it makes callgrind write its
counts after each batch, with a label `operations=N`. See bench/gates/paths.cc.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

# libc has several copies of memcpy and the like, and takes one that suits the CPU. The counts shall
# be the same on all, so it is told that the CPU has nothing but what each x86-64 has.
PLAIN_CPU = "glibc.cpu.hwcaps=-AVX2,-AVX,-ERMS,-FSRM,-BMI2,-RTM"
TIMEOUT_SECONDS = 300
MOVED = 3     # exit status of a program whose main moved to another thread: it counted nothing
ATTEMPTS = 5  # of a program that moved


class Failed(Exception):
    """The program under callgrind did not do its work; the text says why."""


def version():
    """"3.19.0", or "" where there is no valgrind that runs."""
    if not shutil.which("valgrind"):
        return ""
    done = subprocess.run(["valgrind", "--version"], capture_output=True, text=True)
    found = re.match(r"valgrind-(\S+)", done.stdout)
    return found.group(1) if found and done.returncode == 0 else ""


def read_dump(text):
    """One file of callgrind: (operations, instructions in all, {function: its own instructions}).
    None for a file without the label, which callgrind writes when the program ends."""
    label = re.search(r"^desc: Trigger: .*\boperations=(\d+)", text, re.MULTILINE)
    if not label:
        return None
    total = re.search(r"^(?:totals|summary): *(\d+)", text, re.MULTILINE)
    return int(label.group(1)), int(total.group(1)), own_instructions(text)


def own_instructions(text):
    """Sums the costs of each function, without those of the functions it calls."""
    names, costs, function, called = {}, {}, None, False
    for line in text.splitlines():
        if line.startswith("fn="):
            number, name = re.match(r"fn=\((\d+)\)(?: (.*))?$", line).groups()
            if name:
                names[number] = name
            function = names[number]
        elif line.startswith("cfn="):
            number, name = re.match(r"cfn=\((\d+)\)(?: (.*))?$", line).groups()
            if name:
                names[number] = name
        elif line.startswith("calls="):
            called = True  # the next line has what the call cost, which is not the caller's own
        elif re.match(r"[+*-]?\d*\s+\d+$", line) and function is not None:
            if not called:
                plain = re.sub(r"'\d+$", "", function)  # callgrind numbers the levels of recursion
                costs[plain] = costs.get(plain, 0) + int(line.split()[-1])
            called = False
    return costs


def least(dumps):
    """Of the dumps with the same number of operations the one with the fewest instructions: nothing
    makes a path shorter than it is, and now and then a clock or a full queue makes it longer."""
    best = {}
    for operations, total, functions in dumps:
        if operations not in best or total < best[operations][0]:
            best[operations] = (total, functions)
    return best


def per_operation(dumps):
    """(instructions of one operation, {function: its own part of them}), from batches of at least
    two lengths: what does not grow with the length does not count."""
    best = least(dumps)
    if len(best) < 2:
        raise Failed(f"needs batches of two lengths, found {sorted(best)}")
    few, many = min(best), max(best)
    (total_few, of_few), (total_many, of_many) = best[few], best[many]
    functions = {name: (of_many.get(name, 0) - of_few.get(name, 0)) / (many - few)
                 for name in of_few.keys() | of_many.keys()}
    return (total_many - total_few) / (many - few), functions


def run(command):
    """All labelled dumps of a program that runs under callgrind."""
    environment = dict(os.environ, GLIBC_TUNABLES=PLAIN_CPU)
    environment.pop("MAGPIE_DEBUG", None)
    for attempt in range(ATTEMPTS):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                ["valgrind", "--tool=callgrind", "--collect-atstart=no",
                 f"--callgrind-out-file={folder}/out", *map(str, command)],
                capture_output=True, text=True, env=environment, timeout=TIMEOUT_SECONDS)
            if done.returncode == MOVED and attempt + 1 < ATTEMPTS:
                continue
            if done.returncode != 0:
                raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n"
                             f"{done.stderr[-2000:]}")
            files = sorted(Path(folder).glob("out*"))
            return [dump for dump in (read_dump(f.read_text()) for f in files) if dump]
