"""Means over few seeds and how far they can be believed; seeded, so that the same runs give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, stdtrit

from hotloop.core.types import Array

Statistic = Callable[..., Any]
"""Called with `axis`, which it reduces: `np.mean`, `interquartile_mean`."""

LEVEL = 0.95
REPEATS = 10_000


class Interval(NamedTuple):
    low: Any
    high: Any


class Estimate(NamedTuple):
    """A number with its 95 % interval: None where there is none, infinite where a time was never reached."""

    value: float | None
    interval: Interval | None = None


def interquartile_mean(values: Array, axis: int = -1) -> Any:
    """The mean of the middle half. Where n is no multiple of 4, the values at its edges count in part: n = 5 weighs
    the sorted values 0, 0.75, 1, 0.75, 0."""
    ordered = np.moveaxis(np.sort(np.asarray(values, dtype=np.float64), axis=axis), axis, -1)
    n = ordered.shape[-1]
    place = np.arange(n)
    inside = np.minimum(place + 1, n * 3 / 4) - np.maximum(place, n / 4)
    return ordered @ np.clip(inside, 0.0, 1.0) / (n / 2)


def mean_height(x: Array, y: Array, start: float, end: float) -> float:
    """The area under the straight lines through (x, y) from `start` to `end`, over its width: a score, not an area.

    Beyond its ends the curve keeps its first and last height.
    """
    inside = (x > start) & (x < end)
    places = np.concatenate([[start], x[inside], [end]])
    heights = np.interp(places, x, y)
    return float(np.trapezoid(heights, places) / (end - start)) if end > start else float(heights[-1])


def t_interval(values: Array, level: float = LEVEL) -> Interval | None:
    """Of the mean: mean +- t(n - 1) s / sqrt(n). Exact for normal values; None for a single one."""
    n = len(values)
    if n < 2:
        return None
    centre, reach = np.mean(values), stdtrit(n - 1, (1 + level) / 2) * np.std(values, ddof=1) / np.sqrt(n)
    return Interval(float(centre - reach), float(centre + reach))


def bootstrap_interval(
    strata: Sequence[Array],
    statistic: Statistic,
    *,
    level: float = LEVEL,
    repeats: int = REPEATS,
    seed: int = 0,
) -> Interval | None:
    """Of a statistic of all strata pooled; each stratum (a task, say) is drawn from on its own, whole rows at a time.

    A stratum is [n] or [n, P], then with an interval for each of P columns. The percentiles are moved outwards so that
    the width matches t for few rows (Hesterberg 2015, "expanded percentile"): plain ones are a factor
    sqrt((n - 1) / n) z / t too narrow. They cannot leave the data, so that below 6 rows the interval is nearly their
    range and covers less than it says. None where no stratum has two rows.
    """
    generator = np.random.default_rng(seed)
    pools = []
    for stratum in strata:
        values = np.asarray(stratum, dtype=np.float64)
        pools.append(values[generator.integers(len(values), size=(repeats, len(values)))])
    sizes = [len(stratum) for stratum in strata]
    if max(sizes) < 2:
        return None
    return expanded(statistic(np.concatenate(pools, axis=1), axis=1), sizes, sum(sizes) - len(sizes), level)


def expanded(drawn: Array, sizes: Sequence[int], freedom: int, level: float = LEVEL) -> Interval:
    """The percentiles of `drawn` [repeats, ...] for samples of these sizes; infinite values may be among them."""
    widening = np.sqrt(max(n / (n - 1) for n in sizes if n > 1))
    tail = float(ndtr(-widening * stdtrit(freedom, (1 + level) / 2)))
    if np.isfinite(drawn).all():
        return Interval(*np.quantile(drawn, [tail, 1 - tail], axis=0))
    low = np.quantile(drawn, tail, axis=0, method="lower")
    return Interval(low, np.quantile(drawn, 1 - tail, axis=0, method="higher"))


def median_time(times: Sequence[float | None]) -> Estimate:
    """The middle of times to an event that some never saw (None): those count as later than all others, and where
    they are half or more the middle is None. An end of the interval may then be infinite: never."""
    if not times:
        return Estimate(None)
    values = never_as_infinite(times)
    middle = float(np.median(values))
    if not np.isfinite(middle):
        return Estimate(None)
    return Estimate(middle, bootstrap_interval([values], np.median))


def never_as_infinite(times: Sequence[float | None]) -> Array:
    return np.array([np.inf if time is None else time for time in times], dtype=np.float64)
