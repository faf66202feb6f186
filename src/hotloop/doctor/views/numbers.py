"""How numbers read in every view of a diagnosis, and where an axis is marked."""

from __future__ import annotations

import math
from collections.abc import Sequence

_SPARKS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"


def percent(share: float) -> str:
    """0.683 -> 68 %, 0.0342 -> 3.4 %."""
    return f"{100 * share:.0f} %" if abs(share) >= 0.0995 else f"{100 * share:.1f} %"


def number(value: float | None) -> str:
    """Enough digits to compare by: 12,345, 123, 12.3, 1.23; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    if value == int(value) and abs(value) < 1_000:
        return f"{value:.0f}"
    size = abs(value)
    return (
        f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.01 else "0.00"
    )


def times(ratio: float | None) -> str:
    """1.04 -> 1.04x, 2.081 -> 2.08x, 12.34 -> 12.3x."""
    if ratio is None or not math.isfinite(ratio):
        return "-"
    if ratio > 100:
        return ">100x"
    return f"{ratio:.1f}x" if ratio >= 9.995 else f"{ratio:.2f}x"


def interval(low: float | None, high: float | None) -> str:
    """[1.24, 1.38]; an open end is one that the data do not bound."""
    if low is None and high is None:
        return ""
    ends = ("" if end is None else times(end).removesuffix("x") for end in (low, high))
    return "[{}, {}]".format(*ends)


def duration(seconds: float) -> str:
    """0.0042 -> 4.2 ms, 31.26 -> 31.3 s, 754 -> 12 min 34 s."""
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def short_number(value: float) -> str:
    """1500000 -> 1.5M, 20000 -> 20k, 0.25 -> 0.25."""
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{letter}"
    return f"{value:.3g}"


def ticks_from_zero(high: float, at_most: int = 5) -> list[float]:
    """Zero and the multiples of 1, 2 or 5 times a power of ten up to `high`."""
    if not high > 0:
        return [0.0]
    size = 10.0 ** math.floor(math.log10(high / at_most))
    size = next(size * factor for factor in (1, 2, 5, 10, 20) if high / (size * factor) < at_most)
    return [round(place * size, 12) for place in range(int(high / size + 1e-9) + 1)]


def block_bar(share: float, width: int) -> str:
    """A bar of text, exact to an eighth of a letter."""
    eighths = round(8 * width * min(1.0, max(0.0, share)))
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def sparkline(values: Sequence[float], width: int = 16) -> str:
    """The shape of a series from zero to its largest value."""
    if not values or max(values) <= 0:
        return ""
    places = range(min(width, len(values)))
    picked = [values[round(place * (len(values) - 1) / max(1, len(places) - 1))] for place in places]
    return "".join(_SPARKS[min(7, max(0, round(7 * value / max(picked))))] for value in picked)
