"""Medians, spreads and ratios of measurements, and when a ratio says nothing."""

import statistics

# A ratio is of no use if the rounds themselves do not agree: its quartiles are further apart than
# this share of it.
NOISE_PERCENT = 30.0
LEAST_ROUNDS = 3


def median(values):
    return statistics.median(values) if values else None


def quartiles(values):
    """(first, third), as values between the measured ones; of fewer than two: the value itself."""
    if len(values) < 2:
        return (values[0], values[0]) if values else (None, None)
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third


def spread_percent(values):
    """How far apart the quartiles are, in percent of the median; None of fewer than two."""
    middle = median(values)
    if len(values) < 2 or not middle:
        return None
    first, third = quartiles(values)
    return 100 * (third - first) / abs(middle)


def round_ratios(ours, theirs, smaller_is_better=True):
    """How many times better `ours` is, round by round. Programs take turns, so the two of a round
    had the same minute of the machine. A round in which one of them failed (None) is left out."""
    pairs = [(o, t) for o, t in zip(ours, theirs) if o and t]
    return [t / o if smaller_is_better else o / t for o, t in pairs]


def judge(ratios, disturbed_rounds=0):
    """(ratio, verdict). The verdict is "" where the ratio counts; else why it does not:
    "disturbed": something else had the machine in at least half of the rounds; "few": fewer than
    three rounds; "noise": the quartiles of the ratios are more than 30 % of the ratio apart; "tie":
    the quartiles lie on both sides of 1, so who is ahead is open."""
    if not ratios:
        return None, ""
    middle = median(ratios)
    if 2 * disturbed_rounds >= len(ratios):
        return middle, "disturbed"
    if len(ratios) < LEAST_ROUNDS:
        return middle, "few"
    first, third = quartiles(ratios)
    if 100 * (third - first) / middle > NOISE_PERCENT:
        return middle, "noise"
    if first < 1 < third:
        return middle, "tie"
    return middle, ""


def best(medians, smaller_is_better=True):
    """The name of the best of {name: median}, or None."""
    known = {name: value for name, value in medians.items() if value is not None}
    if not known:
        return None
    return (min if smaller_is_better else max)(known, key=known.get)
