"""Plots as SVG, written by hand: bars of ratios, and lines of how cost grows."""

import math
from xml.sax.saxutils import escape

UNSURE = "#999999"
COLOURS = ["#1b6ca8", "#c8553d", "#588157", "#8e6c8a", "#b08900", "#444444"]
FONT = 'font-family="sans-serif" font-size="12"'


def text(x, y, words, anchor="start", more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {FONT} {more}>'
            f'{escape(words)}</text>')


def line(x1, y1, x2, y2, colour="#bbbbbb", more=""):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" {more}/>')


def document(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n' +
            "\n".join(parts) + "\n</svg>\n")


def short(value):
    """1,000,000 as 1M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


def decades(least, most):
    """Powers of ten from at or below the least to at or above the most."""
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    return [10.0 ** power for power in range(first, max(last, first + 1) + 1)]


def ticks(values):
    """Where an axis has lines: powers of ten, or the values themselves where they are close."""
    if max(values) / min(values) < 100 and len(set(values)) > 1:
        return sorted(set(values))
    return decades(min(values), max(values))


def bars(title, entries):
    """entries: [(label, ratio, note, is_sure)]. Ratios on a logarithmic axis from the line at 1: to
    the right is better. Ratios that are not sure are grey."""
    left, width, row, top = 210, 820, 20, 50
    most = max([abs(math.log2(ratio)) for _, ratio, _, _ in entries] + [1])
    scale = (width - left - 160) / 2 / most
    middle = left + most * scale
    height = top + row * len(entries) + 20
    parts = [text(10, 20, title, more='font-weight="bold"')]
    for power in range(-math.floor(most), math.floor(most) + 1):
        x = middle + power * scale
        parts.append(line(x, top - 8, x, height - 15))
        parts.append(text(x, top - 12, f"{2.0 ** power:g}×", "middle"))
    for i, (label, ratio, note, is_sure) in enumerate(entries):
        y, length = top + i * row, math.log2(ratio) * scale
        colour = UNSURE if not is_sure else COLOURS[0] if ratio >= 1 else COLOURS[1]
        parts.append(text(left - 8, y + 13, label, "end"))
        parts.append(f'<rect x="{min(middle, middle + length):.1f}" y="{y + 2}" '
                     f'width="{abs(length):.1f}" height="{row - 6}" fill="{colour}"/>')
        parts.append(text(max(middle, middle + length) + 5, y + 13,
                          f"{ratio:.2f}{' ' + note if note else ''}"))
    return document(width, height, parts)


def growth(title, x_label, y_label, series):
    """series: {name: [(x, y)]}, on two logarithmic axes."""
    width, height, left, top, right, bottom = 640, 420, 70, 60, 150, 50
    points = [point for each in series.values() for point in each if point[1] > 0]
    xs, ys = ticks([p[0] for p in points]), decades(min(p[1] for p in points),
                                                    max(p[1] for p in points))

    def at(x, y):
        def share(value, ends):
            return (math.log10(value) - math.log10(ends[0])) / math.log10(ends[-1] / ends[0])
        return (left + share(x, xs) * (width - left - right),
                height - bottom - share(y, ys) * (height - top - bottom))

    parts = [text(10, 20, title, more='font-weight="bold"')]
    for x in xs:
        place = at(x, ys[0])[0]
        parts += [line(place, top, place, height - bottom),
                  text(place, height - bottom + 16, short(x), "middle")]
    for y in ys:
        place = at(xs[0], y)[1]
        parts += [line(left, place, width - right, place),
                  text(left - 6, place + 4, short(y), "end")]
    parts += [text((left + width - right) / 2, height - 12, x_label, "middle"),
              text(14, top - 8, y_label)]
    for i, (name, each) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in each if y > 0)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                     'stroke-width="2"/>')
        parts += [f'<circle cx="{at(x, y)[0]:.1f}" cy="{at(x, y)[1]:.1f}" r="3" '
                  f'fill="{colour}"/>' for x, y in each if y > 0]
        parts.append(text(width - right + 10, top + 16 + 18 * i, name, more=f'fill="{colour}"'))
    return document(width, height, parts)
