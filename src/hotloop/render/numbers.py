"""Numbers for people: as many digits as one compares by, units, signs, bars of text; and where an axis is marked.

Some come out of files that anybody may have written: `number_of` and `shown` take whatever they find there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

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


LARGEST = 1e150
"""Beyond it nothing can be drawn, and squares overflow: such a number counts as missing."""
_LONGEST_TEXT = 240


def number_of(value: Any) -> float | None:
    """A finite number of a size that can be drawn, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -LARGEST <= value <= LARGEST else None  # NaN is not between them either


def number_in(row: Mapping[str, Any], name: str) -> float | None:
    return number_of(row.get(name))


def shown(value: Any) -> str:
    """A value of a settings file, an event or a result, short enough for a cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, list | tuple):
        return shortened(", ".join(shown(item) for item in value[:40])) or "empty"
    try:
        return shortened(str(value)) or "(empty text)"
    except ValueError:  # an integer with more digits than Python prints
        return "a number of thousands of digits"


def _float_text(value: float) -> str:
    text = f"{value:g}"
    return text if float(text) == value or not math.isfinite(value) else repr(value)


def measured(value: Any) -> str:
    """A measurement: four digits are enough to compare by."""
    number = number_of(value)
    if number is None:
        return shown(value)
    if number == int(number) and abs(number) < 1e12:
        return f"{int(number):,}"
    return f"{number:,.0f}" if 10_000 <= abs(number) < 1e12 else f"{number:.4g}"


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def count(number: float | None) -> str:
    return "-" if number is None else f"{int(number):,}"


def number_or_never(value: float | None) -> str:
    """12,345, 123.4, 1.23; `-` for none, `never` for a time that does not come."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "never"
    value = value + 0.0  # no minus before zero
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def signed(value: float) -> str:
    return ("+" if value >= 0 else "") + number_or_never(value)


def axis_range(low: float, high: float) -> tuple[float, float]:
    """A little more than [low, high], never empty; from zero where the data come near it from above."""
    room = (high - low) * 0.04 or abs(low) * 0.1 or 1.0
    start = 0.0 if 0 <= low <= high / 4 and high > 0 else low - room
    return start, high + room


def nice_ticks(low: float, high: float, at_most: int = 7) -> list[float]:
    """The multiples of 1, 2 or 5 times a power of ten within [low, high], as many as `at_most` allows; of an empty axis
    its one place."""
    if not high > low:
        return [low]
    exponent = math.floor(math.log10((high - low) / at_most))
    for factor in (1, 2, 5, 10, 20):
        size = factor * 10.0**exponent
        first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
        if last - first + 1 <= at_most:
            break
    return [round(place * size, 12) for place in range(first, last + 1)]


def tick_label(value: float) -> str:
    """1500000 -> 1.5M, 20000 -> 20k, 0.25 -> 0.25."""
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.4g}{letter}"
    return f"{value:.4g}"


def time_unit(seconds: float) -> tuple[str, float]:
    """A unit in which `seconds` reads well, and how many seconds it has."""
    if seconds < 180:
        return "seconds", 1.0
    return ("minutes", 60.0) if seconds < 3 * 3600 else ("hours", 3600.0)
