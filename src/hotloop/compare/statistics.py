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


class Interval(NamedTuple):
    low: Any
    high: Any


def interquartile_mean(values: Array, axis: int = -1) -> Any:
    """The mean of the middle half. Where n is no multiple of 4, the values at its edges count in part: n = 5 weighs
    the sorted values 0, 0.75, 1, 0.75, 0."""
    ordered = np.moveaxis(np.sort(np.asarray(values, dtype=np.float64), axis=axis), axis, -1)
    n = ordered.shape[-1]
    place = np.arange(n)
    inside = np.minimum(place + 1, n * 3 / 4) - np.maximum(place, n / 4)
    return ordered @ np.clip(inside, 0.0, 1.0) / (n / 2)


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
    repeats: int = 10_000,
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
    freedom = sum(len(stratum) - 1 for stratum in strata)
    if freedom < 1:
        return None
    drawn = statistic(np.concatenate(pools, axis=1), axis=1)
    tail = _tail([len(stratum) for stratum in strata if len(stratum) > 1], freedom, level)
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return Interval(low, high)


def _tail(sizes: Sequence[int], freedom: int, level: float) -> float:
    widening = np.sqrt(max(n / (n - 1) for n in sizes))
    return float(ndtr(-widening * stdtrit(freedom, (1 + level) / 2)))


def median_time(times: Sequence[float | None]) -> float | None:
    """The middle of times to an event that some never saw (None): those count as later than all others."""
    middle = float(np.median([np.inf if time is None else time for time in times])) if times else np.inf
    return middle if np.isfinite(middle) else None
