"""Means over few seeds and how far they can be believed; seeded, so that the same runs give the same numbers.

One arm against another: how likely it is the better one, by how much, and whether chance alone would do.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from hotloop.core.intervals import normal_below, student_quantile
from hotloop.core.two_sample import holm as holm
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
    centre, reach = np.mean(values), student_quantile(n - 1, (1 + level) / 2) * np.std(values, ddof=1) / np.sqrt(n)
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
    tail = normal_below(-widening * student_quantile(freedom, (1 + level) / 2))
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


MOST_SPLITS = 20_000
"""Up to here every split of the pooled seeds into two arms is tried (8 against 8: 12,870); beyond, ranks are normal."""
POWER = 0.8
RANKS_LOSE = math.pi / 3
"""Seeds that a rank test needs for each one of a t test, for normal scores."""


def probability_of_improvement(first: Array, second: Array) -> Any:
    """P(second > first) + P(second = first) / 2 over all pairs: Mann-Whitney's U over n m. Arrays are [..., n]."""
    return (np.sign(second[..., None, :] - first[..., :, None]).mean(axis=(-2, -1)) + 1) / 2


def chance_of_splits(first: Array, second: Array) -> float:
    """The share of all ways to deal the pooled values to two arms of these sizes in which their rank sums lie at least
    as far apart (two-sided p). Where both arms come from one distribution, p <= a happens with at most a,
    whatever that distribution; ties included."""
    n, m = len(first), len(second)
    ranks = _midranks(np.concatenate([first, second]))
    centre = n * (n + m + 1) / 2
    away = abs(ranks[:n].sum() - centre)
    if math.comb(n + m, n) <= MOST_SPLITS:
        return float(np.mean(np.abs(ranks[_splits(n, m)].sum(axis=1) - centre) >= away - 1e-9))
    spread = math.sqrt(n * m / (n + m - 1) * max(0.0, float(np.mean(ranks**2)) - ((n + m + 1) / 2) ** 2))
    return 1.0 if spread == 0 else min(1.0, 2 * normal_below(-max(0.0, away - 0.5) / spread))


@functools.lru_cache(maxsize=8)
def _splits(n: int, m: int) -> Array:
    return np.array(list(itertools.combinations(range(n + m), n)))


def _midranks(values: Array) -> Array:
    """1 for the smallest; equal values share the mean of their ranks."""
    _, group, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[group]


class Draws:
    """Two arms drawn anew, `REPEATS` times; seed by seed together where `paired` says that row i of both is one seed.

    The same draws serve every statistic.
    """

    def __init__(
        self, n: int, m: int, *, paired: bool, repeats: int = REPEATS, seed: int = 0, level: float = LEVEL
    ) -> None:
        generator = np.random.default_rng(seed)
        self._sizes, self._paired, self._level = (n, m), paired, level
        self._first = generator.integers(n, size=(repeats, n))
        self._second = self._first if paired else generator.integers(m, size=(repeats, m))

    def difference(self, first: Array, second: Array, statistic: Statistic) -> Estimate:
        """Of the statistic: second minus first."""
        value = float(statistic(second, axis=-1) - statistic(first, axis=-1))
        return Estimate(
            value, self._interval(statistic(second[self._second], axis=1) - statistic(first[self._first], axis=1))
        )

    def improvement(self, first: Array, second: Array) -> Estimate:
        drawn = probability_of_improvement(first[self._first], second[self._second])
        return Estimate(float(probability_of_improvement(first, second)), self._interval(drawn))

    def rate_ratio(self, first: Array, second: Array) -> Estimate:
        """Second over first, of geometric means."""
        value, interval = self.difference(np.log(first), np.log(second), np.mean)
        assert value is not None
        return Estimate(math.exp(value), interval and Interval(math.exp(interval.low), math.exp(interval.high)))

    def time_ratio(self, first: Array, second: Array) -> Estimate:
        """The median of first over that of second: above 1 the second is sooner. Never is infinite; a draw in which
        both never arrive could be anything, and counts as both 0 and infinite."""
        value = _ratio(np.median(first), np.median(second))
        middles = np.median(first[self._first], axis=1), np.median(second[self._second], axis=1)
        drawn = _ratio(*middles)
        unknown = np.isnan(drawn)
        ends = [self._interval(np.where(unknown, limit, drawn)) for limit in (0.0, np.inf)]
        if np.isnan(value) or ends[0] is None or ends[1] is None:
            return Estimate(None if np.isnan(value) else float(value))
        return Estimate(float(value), Interval(float(ends[0].low), float(ends[1].high)))

    def _interval(self, drawn: Array) -> Interval | None:
        n, m = self._sizes
        if min(n, m) < 2:
            return None
        sizes, freedom = ([n], n - 1) if self._paired else ([n, m], n + m - 2)
        return expanded(drawn, sizes, freedom, self._level)


def _ratio(first: Any, second: Any) -> Any:
    with np.errstate(invalid="ignore", divide="ignore"):
        return first / second


def can_tell(seeds: tuple[int, int], tests: int, level: float = LEVEL) -> bool:
    """Whether even the most extreme deal of these seeds is rare enough to be more than chance."""
    return min(seeds) > 1 and 2 * tests <= (1 - level) * math.comb(sum(seeds), seeds[0]) * (1 + 1e-9)


def least_seeds(tests: int, level: float = LEVEL) -> int:
    """Of each arm, for anything to be told from chance: 5 where two tests are made."""
    return next(n for n in itertools.count(2) if can_tell((n, n), tests, level))


def looks_at(most: int, tests: int) -> list[int]:
    """The numbers of seeds of each arm at which a comparison that adds seeds until it is sure looks at what it has:
    from the least that can tell anything by half more each time up to `most`. Few looks, since each takes its part of
    the 5 %."""
    for looks in itertools.count(1):
        counts, next_look = [most], least_seeds(tests * looks)
        while 1.2 * next_look <= most:
            counts.insert(-1, next_look)
            next_look += next_look // 2
        if len(counts) <= looks:
            break
    return counts


def seeds_for(difference: float, spread: float, tests: int) -> int:
    """Seeds in each arm that show a `difference` of normal scores of that standard deviation, in four cases of five."""
    reach, few = _reach(tests)
    needed = RANKS_LOSE * 2 * (reach * spread / difference) ** 2 + few if difference > 0 else math.inf
    return max(least_seeds(tests), math.ceil(min(needed, 1e9)))


def seeds_for_shares(counts: tuple[int, int], seeds: tuple[int, int]) -> int:
    """Seeds in each arm that would show such a difference of shares, in four cases of five (arcsine scale)."""
    first, second = (2 * math.asin(math.sqrt(count / n)) for count, n in zip(counts, seeds, strict=True))
    rare, power = NormalDist().inv_cdf(1 - (1 - LEVEL) / 2), NormalDist().inv_cdf(POWER)
    return math.ceil(2 * ((rare + power) / (second - first)) ** 2)


def difference_for(seeds: float, spread: float, tests: int) -> float:
    """The other way round: what `seeds` in each arm would have shown."""
    reach, few = _reach(tests)
    return float(reach * spread * math.sqrt(2 * RANKS_LOSE / max(1.0, seeds - few)))


def _reach(tests: int) -> tuple[float, float]:
    """Standard errors that a difference must measure, and the seeds that an unknown spread costs (Guenther 1981)."""
    rare = NormalDist().inv_cdf(1 - (1 - LEVEL) / 2 / tests)
    return rare + NormalDist().inv_cdf(POWER), rare**2 / 4
