"""Tests of lib/callgrind.py and of what gates/run makes of its counts."""

import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BENCH / "lib"))
import callgrind  # noqa: E402


def load_script(name, path):
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    loader.exec_module(module)
    return module


gates = load_script("gates_run", BENCH / "gates/run")

DUMP = """# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 7
desc: Trigger: Client Request: operations=100

positions: line
events: Ir
summary: 5100

ob=(1) /somewhere/program
fl=(1) a.cc
fn=(1) outer(long)
10 600
+2 300
cfn=(2) inner()
calls=100 20
+1 4000
-1 100
* 100

fn=(2)
20 3000
cfi=(2) b.cc
cfn=(3) leaf [clone .cold]
calls=1 1
* 1000

fn=(3)
0 400

fn=(4) leaf [clone .cold]'2
0 600

totals: 5100
"""


class ReadingADump(unittest.TestCase):
    def test_it_has_the_label_the_total_and_each_function_without_its_callees(self):
        operations, total, functions = callgrind.read_dump(DUMP)
        self.assertEqual(operations, 100)
        self.assertEqual(total, 5100)
        self.assertEqual(functions, {"outer(long)": 1100, "inner()": 3000,
                                     "leaf [clone .cold]": 1000})
        self.assertEqual(sum(functions.values()), total)

    def test_the_dump_at_the_end_of_a_program_has_no_label_and_does_not_count(self):
        text = DUMP.replace("Client Request: operations=100", "Program termination")
        self.assertIsNone(callgrind.read_dump(text))


class CountingAnOperation(unittest.TestCase):
    def test_what_does_not_grow_with_the_batch_does_not_count(self):
        dumps = [(100, 1500, {"f": 1000, "setup": 500}), (300, 3500, {"f": 3000, "setup": 500})]
        total, functions = callgrind.per_operation(dumps)
        self.assertEqual(total, 10)
        self.assertEqual(functions, {"f": 10, "setup": 0})

    def test_the_batch_with_the_fewest_instructions_counts(self):
        dumps = [(100, 1000, {}), (300, 3400, {}), (100, 1200, {}), (300, 3000, {})]
        self.assertEqual(callgrind.per_operation(dumps)[0], 10)

    def test_one_length_is_too_few(self):
        with self.assertRaises(callgrind.Failed):
            callgrind.per_operation([(100, 1000, {}), (100, 1001, {})])


class ComparingWithWhatIsStored(unittest.TestCase):
    def test_two_percent_more_are_allowed_and_three_are_not(self):
        self.assertEqual(gates.compare({"yield": 500}, {"yield": 510}), ([], []))
        worse, better = gates.compare({"yield": 500}, {"yield": 515})
        self.assertEqual(worse, ["yield: 500.0 instructions an operation before, 515.0 now "
                                 "(+3.0 %)"])
        self.assertEqual(better, [])

    def test_one_instruction_more_in_a_short_path_fails_and_a_rounding_error_does_not(self):
        self.assertTrue(gates.compare({"mutex": 11}, {"mutex": 12})[0])
        self.assertFalse(gates.compare({"mutex": 11}, {"mutex": 11.4})[0])

    def test_fewer_is_no_failure_and_is_told(self):
        worse, better = gates.compare({"yield": 500}, {"yield": 400})
        self.assertEqual(worse, [])
        self.assertEqual(len(better), 1)

    def test_paths_that_only_one_side_has_fail(self):
        self.assertEqual(len(gates.compare({"gone": 1}, {"new": 1})[0]), 2)

    def test_another_compiler_skips(self):
        with self.assertRaises(SystemExit) as ended:
            gates.check_build({"compiler": "GNU 13.1.0"}, {"compiler": "GNU 12.2.0"})
        self.assertEqual(ended.exception.code, gates.SKIPPED)
        gates.check_build({"compiler": "GNU 12.2.0"}, {"compiler": "GNU 12.2.0"})


class StoredCounts(unittest.TestCase):
    def test_there_are_at_least_twenty_paths(self):
        import json
        stored = json.loads(gates.STORED.read_text())
        self.assertGreaterEqual(len(stored["paths"]), 20)
        self.assertEqual(stored["build"]["machine"], "x86_64")


if __name__ == "__main__":
    unittest.main()
