"""Does it get slower? Costs over the run, over the fill of the replay and over numbers of envs.

The only place where growth is computed. Longer episodes are told apart from slower steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from statistics import median

from hotloop.doctor.trace import SAMPLE, UPDATE, Growth, Slice, Trace

BINS = 10
EPISODE_LENGTH = "env steps per episode"
LEAST_PHASE_SHARE = 0.02


def growth_over_run(timeline: Sequence[Slice]) -> list[Growth]:
    """Cost of an env step, and of every phase that matters, from the first tenth of the loop to the last.

    What comes with learning (no updates in the warm-up) must not pass for growth, so the run is taken from its first
    slice with the usual number of updates on.
    """
    steady = _steady(timeline)
    if len(steady) < BINS:
        return []
    bursts = _comes_in_bursts(steady)
    if bursts:
        learned = [part.phases.get(UPDATE, 0.0) for part in steady]
        rest = [part.seconds - seconds for part, seconds in zip(steady, learned, strict=True)]
        grown = [_growth("env step without the update", steady, rest)]
    else:
        grown = [_growth("env step", steady, [part.seconds for part in steady])]
    for phase in _phases_that_matter(steady):
        if bursts and phase == UPDATE:
            continue
        found = _growth(phase, steady, [part.phases.get(phase, 0.0) for part in steady])
        if median([cost for _, cost in found.points[:2]]) > 0:  # what only begins later does not grow
            grown.append(found)
    lengths = _episode_lengths(steady)
    if lengths:
        grown.append(lengths)
    return grown


def growth_over_fill(timeline: Sequence[Slice], capacity: int) -> list[Growth]:
    """Microseconds of sampling per update while a replay of `capacity` rows fills, one row for each env step."""
    points, env_steps = [], 0
    for part in timeline:
        env_steps += part.env_steps
        if part.updates and env_steps <= 1.2 * capacity:
            fill = float(min(env_steps, capacity))
            points.append((fill, 1e6 * part.phases.get(SAMPLE, 0.0) / part.updates))
    if len(points) < 4:
        return []
    fifth = max(1, len(points) // 5)
    first, last = (sorted(cost for _, cost in ends)[fifth // 2] for ends in (points[:fifth], points[-fifth:]))
    ratio = last / first if first else 1.0
    return [Growth(over="replay fill", what="sample, per update", points=tuple(points), ratio=ratio)]


def growth_over_envs(seconds: Mapping[int, float]) -> list[Growth]:
    """Of an env step, from its cost in seconds by number of envs."""
    points = tuple((float(num_envs), 1e6 * cost) for num_envs, cost in sorted(seconds.items()))
    if len(points) < 2:
        return []
    return [Growth(over="num_envs", what="env step", points=points, ratio=points[-1][1] / points[0][1])]


def with_growth(trace: Trace, capacity: int = 0, by_envs: Mapping[int, float] | None = None) -> Trace:
    """The trace with all that can be said of growth: over the run, over the fill of a replay of `capacity` rows, and
    over numbers of envs, where costs `by_envs` were measured. Whoever has recorded a trace calls this once."""
    growth = growth_over_run(trace.timeline)
    growth += growth_over_fill(trace.timeline, capacity) if capacity else []
    growth += growth_over_envs(by_envs or {})
    return replace(trace, growth=tuple(growth), notes=(*trace.notes, *growth_notes(growth)))


def growth_notes(growth: Sequence[Growth]) -> list[str]:
    """A note where episodes became longer while an env step kept its cost: then only time per episode grows."""
    over_run = {one.what: one.ratio for one in growth if one.over == "run"}
    longer, slower = over_run.get(EPISODE_LENGTH, 1.0), over_run.get("env step", 1.0)
    if longer < 1.5 or slower > 1.2:
        return []
    return [
        f"episodes became {longer:.1f}x longer while an env step kept its cost ({slower:.2f}x): time per episode "
        "grows, but nothing in the loop got slower"
    ]


def _steady(timeline: Sequence[Slice]) -> list[Slice]:
    """From the first slice with at least half the usual updates per env step on."""
    ratios = [part.updates / max(1, part.env_steps) for part in timeline]
    usual = sum(part.updates for part in timeline) / max(1, sum(part.env_steps for part in timeline))
    for index, ratio in enumerate(ratios):
        if ratio >= usual / 2:
            return list(timeline[index + 1 :] if index else timeline)
    return list(timeline)


def _comes_in_bursts(steady: Sequence[Slice]) -> bool:
    """Whether some tenths hold far more of the learning than others, as with rollouts: no measure of growth then."""
    updates, env_steps = _sums([part.updates for part in steady]), _sums([part.env_steps for part in steady])
    usual = sum(updates) / sum(env_steps)
    ratios = [made / count for made, count in zip(updates, env_steps, strict=True)]
    return any(abs(ratio - usual) > 0.5 * usual for ratio in ratios)


def _phases_that_matter(steady: Sequence[Slice]) -> list[str]:
    total = sum(part.seconds for part in steady)
    names = sorted({name for part in steady for name in part.phases})
    return [n for n in names if sum(part.phases.get(n, 0.0) for part in steady) >= LEAST_PHASE_SHARE * total]


def _growth(what: str, steady: Sequence[Slice], seconds: Sequence[float]) -> Growth:
    """Microseconds per env step in each tenth."""
    spent, env_steps = _sums(seconds), _sums([part.env_steps for part in steady])
    points = [
        (place, 1e6 * cost / count) for place, cost, count in zip(_places(env_steps), spent, env_steps, strict=True)
    ]
    return Growth(over="run", what=what, points=tuple(points), ratio=ends_ratio([cost for _, cost in points]))


def _episode_lengths(steady: Sequence[Slice]) -> Growth | None:
    env_steps, episodes = _sums([part.env_steps for part in steady]), _sums([part.episodes for part in steady])
    if not all(episodes):
        return None
    lengths = [count / ended for count, ended in zip(env_steps, episodes, strict=True)]
    points = tuple(zip(_places(env_steps), lengths, strict=True))
    return Growth(over="run", what=EPISODE_LENGTH, points=points, ratio=ends_ratio(lengths))


def _sums(values: Sequence[float]) -> list[float]:
    """Of each tenth of the slices."""
    edges = [round(index * len(values) / BINS) for index in range(BINS + 1)]
    return [sum(values[start:end]) for start, end in pairwise(edges)]


def _places(env_steps: Sequence[float]) -> list[float]:
    """The middle of each tenth, in env steps since the first."""
    return [end - count / 2 for end, count in zip(accumulate(env_steps), env_steps, strict=True)]


def ends_ratio(costs: Sequence[float]) -> float:
    """The last two tenths over the first two: one busy moment of the machine counts less than with one tenth each."""
    first, last = median(costs[:2]), median(costs[-2:])
    return last / first if first > 0 else 1.0
