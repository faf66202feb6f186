"""Numbers out of files that anybody may have written, and how they read on the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

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
