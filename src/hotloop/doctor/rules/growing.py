"""What gets slower while the run goes on."""

from __future__ import annotations

from statistics import linear_regression

from hotloop.doctor.finding import Finding, rule
from hotloop.doctor.rules.evidence import SAVED_ENTIRELY, Remedy, number, percent, suggest
from hotloop.doctor.trace import ENV, CallCount, Growth, Trace

LEAST_GROWTH = 1.4
BEYOND_THE_OTHERS = 1.3
"""A machine that gets busier slows everything alike; what grows outgrows the rest."""
STEADINESS = 0.78
LOWEST_START = 0.25
LARGE_CONTAINER = 500
GROWING_CALLS = ("list.append", "list.insert", "list.pop", "list.extend", "deque.append", "random.sample")

BOUND = Remedy(
    "Keep running sums instead of sums over everything, and a ring for replay (hotloop's `Replay` costs the same full "
    "as empty). The mean of the last hundred, of a `deque(maxlen=100)`, is as cheap, and another number.",
    "returns.append(r)\nmean = np.mean(returns)",
    "total, count = 0.0, 0\n# in the loop\ntotal, count = total + r, count + 1\nmean = total / count",
)


@rule("GROW001")
def slower_and_slower(trace: Trace) -> Finding | None:
    """Env steps get slower as the run goes on.

    Something is searched, summed or copied whole and becomes longer: a list of all returns, a replay that is a list, a
    history. Found where the last fifth of the run costs 1.4 times the first or more per env step, and one phase
    rises all along. Longer episodes make a run slower per episode, not per env step, and are no finding.
    """
    whole = _growth(trace, "env step")
    if whole is None or whole.ratio < LEAST_GROWTH:
        return None
    phases = [one for one in trace.growth if one.over == "run" and one.what in trace.phases]
    grown = max(phases, key=_rise, default=None)
    if grown is None or grown.what == ENV or _rise(grown) < _rise(whole) / 2 or not _rises(grown):
        return None
    others = max(1e-9, _first(whole) - _first(grown)), _last(whole) - _last(grown)
    if grown.ratio < max(LEAST_GROWTH, BEYOND_THE_OTHERS * others[1] / others[0]):
        return None
    share = 1 - _at_the_start(whole) / _mean(whole)
    largest = _largest(trace, grown.what)
    container = f"; {largest.name} works on {number(largest.largest)} entries there" if largest else ""
    evidence = (
        f"an env step costs {number(_first(whole))} microseconds at first and {number(_last(whole))} at the end; "
        f"`{grown.what}` grew {number(grown.ratio)} times, which is {percent(share)} of the loop{container}."
    )
    places = [largest.where] if largest else []
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, remedy=BOUND, places=places, relief=0.0)


def _growth(trace: Trace, what: str) -> Growth | None:
    return next((one for one in trace.growth if one.over == "run" and one.what == what), None)


def _first(growth: Growth) -> float:
    return sum(cost for _, cost in growth.points[:2]) / max(1, len(growth.points[:2]))


def _at_the_start(growth: Growth) -> float:
    """Before anything had grown: where the line through all tenths begins. Even the first tenth has grown a little."""
    places, costs = zip(*growth.points, strict=True)
    line = linear_regression(places, costs)
    return min(max(line.intercept, LOWEST_START * _first(growth)), _first(growth))


def _last(growth: Growth) -> float:
    return sum(cost for _, cost in growth.points[-2:]) / max(1, len(growth.points[-2:]))


def _mean(growth: Growth) -> float:
    return sum(cost for _, cost in growth.points) / max(1, len(growth.points))


def _rise(growth: Growth) -> float:
    return _last(growth) - _first(growth)


def _rises(growth: Growth) -> bool:
    """Dear at the end for having risen, not for one busy moment: of all pairs of points most rise."""
    costs = [cost for _, cost in growth.points]
    pairs = [(costs[i], costs[j]) for i in range(len(costs)) for j in range(i + 1, len(costs))]
    return sum(later > earlier for earlier, later in pairs) >= STEADINESS * len(pairs) > 0


def _largest(trace: Trace, phase: str) -> CallCount | None:
    """The longest container that the growing phase works on."""
    calls = [call for call in trace.calls_named(*GROWING_CALLS) if call.phase == phase]
    calls = [call for call in calls if call.largest >= LARGE_CONTAINER]
    return max(calls, key=lambda call: call.largest, default=None)
