"""Tests of the check that nothing grows faster than n log n."""

import math
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from growing import too_fast  # noqa: E402

SIZES = [100, 1000, 10_000]


def counts(cost):
    return {n: cost(n) for n in SIZES}


class Growth(unittest.TestCase):
    def test_what_grows_no_faster_than_n_log_n_passes(self):
        for cost in (lambda n: 500, lambda n: 500 * n, lambda n: 30 * n * math.log2(n),
                     lambda n: 100_000 + 700 * n):
            self.assertEqual(too_fast(counts(cost)), [])

    def test_what_grows_faster_is_found_with_the_step(self):
        for cost in (lambda n: n * n, lambda n: n ** 1.5, lambda n: 1000 * n + n ** 2):
            self.assertEqual(too_fast(counts(cost))[-1][:2], (1000, 10_000))

    def test_a_single_bad_step_is_found(self):
        self.assertEqual([step[:2] for step in too_fast({100: 1e5, 1000: 1e6, 10_000: 3e7})],
                         [(1000, 10_000)])


if __name__ == "__main__":
    unittest.main()
