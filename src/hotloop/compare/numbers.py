"""Numbers for people: as many digits as one compares by."""

from __future__ import annotations

import math

from hotloop.compare.statistics import Estimate


def number(value: float | None) -> str:
    """12,345, 123.4, 1.23; `-` for none, `never` for a time that does not come."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "never"
    value = value + 0.0  # no minus before zero
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def signed(value: float) -> str:
    return ("+" if value >= 0 else "") + number(value)


def with_interval(estimate: Estimate) -> str:
    if estimate.value is None or estimate.interval is None:
        return number(estimate.value)
    return f"{number(estimate.value)} {between(estimate)}"


def between(estimate: Estimate) -> str:
    assert estimate.interval is not None
    return f"[{number(float(estimate.interval.low))}, {number(float(estimate.interval.high))}]"


def percent(estimate: Estimate) -> str:
    assert estimate.value is not None
    if estimate.interval is None:
        return f"{100 * estimate.value:.0f} %"
    return f"{100 * estimate.value:.0f} % [{100 * estimate.interval.low:.0f}, {100 * estimate.interval.high:.0f}]"


def times(ratio: Estimate) -> str:
    """2.4x [1.9, 3.0]; `never` and `only it` where one of the two does not get there; an end without limit is `any`."""
    if ratio.value is None:
        return "-"
    if ratio.value == 0 or not math.isfinite(ratio.value):
        return "never" if ratio.value == 0 else "only it"
    if ratio.interval is None:
        return f"{_factor(ratio.value)}x"
    return f"{_factor(ratio.value)}x [{_factor(ratio.interval.low)}, {_factor(ratio.interval.high)}]"


def _factor(value: float) -> str:
    if not math.isfinite(value):
        return "any"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
