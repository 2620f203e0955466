"""Does cost grow faster than n log n? By instruction counts, which no other process disturbs."""

import math

# What a count may be above n log n from one n to the next: tables that double, and caches of
# records that are filled once, make steps. From 1,000 to 10,000 that allows a factor of 14.7. What
# grows as n to the power of 1.2 has 15.8 there, n squared has 100: both are seen.
SLACK = 1.1


def n_log_n(n):
    return n * math.log2(n)


def too_fast(counts):
    """Of {n: instructions in all} the steps that grow faster than n log n: [(from, to, by which
    factor more)]."""
    found, sizes = [], sorted(counts)
    for small, large in zip(sizes, sizes[1:]):
        grown = counts[large] / counts[small]
        bound = n_log_n(large) / n_log_n(small)
        if grown > bound * SLACK:
            found.append((small, large, grown / bound))
    return found
