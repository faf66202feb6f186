"""What the machine does beside the loop: threads, tiny numbers, collecting; what gets slower as the run goes on."""

from __future__ import annotations

import re
from itertools import pairwise
from statistics import linear_regression

from hotloop.doctor.finding import IDENTICAL, RELIEF, TO_ROUNDING, Finding, Remedy, rule
from hotloop.doctor.rules.beneath import mentioned
from hotloop.doctor.rules.drawing import growing_share
from hotloop.doctor.rules.evidence import (
    SAVED_ENTIRELY,
    calls_like,
    lines_with,
    number,
    places_of,
    sampled_share,
    suggest,
)
from hotloop.doctor.snippets import LEFT_OPEN
from hotloop.doctor.trace import ENV, CallCount, Experiment, Growth, Trace
from hotloop.render.numbers import percent

LEAST_DENORMALS, MANY_DENORMALS = 0.01, 0.2
DENORMAL_SPEEDUP = 1.5

THREADS = Remedy(
    "Set the number of threads before the first tensor; small networks are fastest with one. Sums that threads shared "
    "are then added in another order: the same up to rounding.",
    "import torch",
    "import torch\n\ntorch.set_num_threads(1)",
    fill=lambda trace, where: f"import torch\n\ntorch.set_num_threads({fastest_count(trace)})",
)
DENORMALS = Remedy(
    "Flush them to zero, per thread: they are too small to move a parameter. hotloop does so in its own loops.",
    "import torch",
    "import torch\n\ntorch.set_flush_denormal(True)",
)
COLLECT = Remedy(
    "Leave collection to Python, or freeze what is there after set-up.",
    "gc.collect()",
    "import gc\n\ngc.collect()\ngc.freeze()  # what is there by now is not looked at again\n# in the loop: nothing",
)


def fastest(trace: Trace) -> Experiment | None:
    """Of the thread counts that were tried and found faster beyond doubt."""
    tried = [one for one in trace.experiments if "thread" in one.name and one.low > 1.0]
    return max(tried, key=lambda one: one.ratio, default=None)


def fastest_count(trace: Trace) -> str:
    best = fastest(trace)
    return re.sub(r"\D", "", best.name) if best else LEFT_OPEN


@rule("MACHINE001", remedy=THREADS, kind=TO_ROUNDING)
def wrong_thread_count(trace: Trace) -> Finding | None:
    """Another number of threads is faster.

    Threads wait for each other after every operation; small tensors are done before the others wake up, and more
    threads than cores take turns. Found by running the loop with other thread counts, interleaved and by the wall
    clock: on a busy machine a thread also waits for others that stand in the queue for a core.
    """
    best = fastest(trace)
    if best is None:
        return None
    threads, cores = trace.machine.get("torch_threads", "?"), trace.machine.get("cores", "?")
    evidence = (
        f"{best.what} is {best.ratio:.2f} times as fast ({best.low:.2f} to {best.high:.2f}) as the loop as it is, "
        f"with {threads} thread{'s' * (threads != 1)} on {cores} core{'s' * (cores != 1)}, by the wall clock."
    )
    places = mentioned(trace, "set_num_threads")
    return suggest(trace, 1 - 1 / best.ratio, SAVED_ENTIRELY, evidence=evidence, places=places, relief=0.0)


@rule("MACHINE002", remedy=DENORMALS, kind=TO_ROUNDING)
def denormal_numbers(trace: Trace) -> Finding | None:
    """The optimizer computes with denormal numbers.

    Moments of units that no longer learn decay below 1e-38, where processors take many times as long. Found where
    some of the optimizer's state is that small and the loop is faster with it flushed to zero, by no more than
    forward, backward and optimizer take; where that was not tried, where a fifth of the state is.
    """
    counts = trace.counts
    part = counts.denormal_values / max(1, 2 * counts.parameters)
    if part < LEAST_DENORMALS or trace.machine.get("denormals_flushed"):
        return None
    places = mentioned(trace, "set_flush_denormal") or [where for where in (trace.made.get("optimiser"),) if where]
    evidence = f"{number(counts.denormal_values)} numbers of the optimizer's state ({percent(part)}) are denormal; "
    tried = next((one for one in trace.experiments if "denormal" in one.name), None)
    learning = sum(map(trace.part_share, ("forward", "backward", "optimiser")))
    most = 1 / (1 - learning) if 0 < learning < 1 else float("inf")
    if tried is not None and tried.low <= most:  # above it something else has changed: what was flushed stays so
        evidence += (
            f"flushing them makes the loop {tried.ratio:.2f} times as fast ({tried.low:.2f} to {tried.high:.2f})."
        )
        share, speedup = 1 - 1 / max(1.0, min(tried.ratio, most)), SAVED_ENTIRELY
        if tried.low <= 1:
            return None
        return suggest(trace, share, speedup, evidence=evidence, places=places, relief=0.0)
    if part < MANY_DENORMALS:
        return None
    optimiser = trace.part_share("optimiser")
    evidence += f"the optimizer takes {percent(optimiser)} of the loop."
    return suggest(trace, optimiser, DENORMAL_SPEEDUP, evidence=evidence, places=places, relief=0.0)


@rule("MACHINE004", remedy=COLLECT, kind=IDENTICAL)
def collected_by_hand(trace: Trace) -> Finding | None:
    """Garbage is collected by hand in the loop.

    `gc.collect()` looks at every object of the process, the replay included: tens of milliseconds, more as it fills.
    Found where it takes a part of the loop.
    """
    calls = calls_like(trace, ("gc.collect",))
    places = list(dict.fromkeys([*places_of(calls), *lines_with(trace, ("gc.collect(",))]))
    share = sampled_share(trace, places)
    often = f" runs every {number(1 / trace.per_env_step(calls))} env steps and" if calls else ""
    evidence = f"`gc.collect`{often} takes {percent(share)} of the loop."
    # A collection goes through all objects, and the rest finds its caches cold: 39 to 65 were measured for 36.
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=places, relief=RELIEF / 2)


LEAST_GROWTH = 1.4
BEYOND_THE_OTHERS = 1.3
"""A machine that gets busier slows everything alike; what grows outgrows the rest."""
STEADINESS = 0.78
AT_ONCE = 0.6
"""Of the whole rise, from one tenth of the run to the next."""
LOWEST_START = 0.25
GROWN_RELIEF = RELIEF / 2
"""The line through all tenths begins where little has pushed the rest out of the caches, and so holds a part of the
relief already; the rest took 1.3 to 1.5 times as long there as without the history."""
LARGE_CONTAINER = 500
GROWING_CALLS = ("list.append", "list.insert", "list.pop", "list.extend", "deque.append", "random.sample")


BOUND = Remedy(
    "Keep running sums instead of sums over everything, and a ring for replay (hotloop's `Replay` costs the same full "
    "as empty). The mean of the last hundred, of a `deque(maxlen=100)`, is as cheap, and another number.",
    "returns.append(r)\nmean = np.mean(returns)",
    "total, count = 0.0, 0\n# in the loop\ntotal, count = total + r, count + 1\nmean = total / count",
)


@rule("GROW001", remedy=BOUND, kind=TO_ROUNDING, condition="running sums hold all that is read of the history")
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
    start = _at_the_start(whole, trace.counts.skipped_env_steps)
    share = max(0.0, 1 - start / _mean(whole) - growing_share(trace))
    largest = _largest(trace, grown.what)
    container = f"; {largest.name} works on {number(largest.largest)} entries there" if largest else ""
    evidence = (
        f"an env step costs {number(_first(whole))} microseconds at first and {number(_last(whole))} at the end; "
        f"`{grown.what}` grew {number(grown.ratio)} times, which is {percent(share)} of the loop{container}."
    )
    places = [largest.where] if largest else []
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=places, relief=GROWN_RELIEF)


def _growth(trace: Trace, what: str) -> Growth | None:
    return next((one for one in trace.growth if one.over == "run" and one.what == what), None)


def _first(growth: Growth) -> float:
    return sum(cost for _, cost in growth.points[:2]) / max(1, len(growth.points[:2]))


def _at_the_start(growth: Growth, skipped: int) -> float:
    """Before anything had grown: where the line through all tenths begins, at the script's first env step. Even the
    first tenth has grown a little, and what is told begins after env steps that were `skipped`, in which it grew too;
    but for no longer than was seen since may the line be drawn on."""
    places, costs = zip(*growth.points, strict=True)
    line = linear_regression(places, costs)
    begins = line.intercept - line.slope * min(skipped, places[-1])
    return float(min(max(begins, LOWEST_START * _first(growth)), _first(growth)))


def _last(growth: Growth) -> float:
    return sum(cost for _, cost in growth.points[-2:]) / max(1, len(growth.points[-2:]))


def _mean(growth: Growth) -> float:
    """Over env steps, of which some tenths hold more than others."""
    parts = [(there - here, (cost + later) / 2) for (here, cost), (there, later) in pairwise(growth.points)]
    return sum(width * cost for width, cost in parts) / max(1e-9, sum(width for width, _ in parts))


def _rise(growth: Growth) -> float:
    return _last(growth) - _first(growth)


def _rises(growth: Growth) -> bool:
    """Dear at the end for having risen, not for one busy moment: of all pairs of points most rise. What rises at once
    is something that begins: learning above all, where it cannot be seen."""
    costs = [cost for _, cost in growth.points]
    if max((later - earlier for earlier, later in pairwise(costs)), default=0.0) > AT_ONCE * _rise(growth):
        return False
    pairs = [(costs[i], costs[j]) for i in range(len(costs)) for j in range(i + 1, len(costs))]
    return sum(later > earlier for earlier, later in pairs) >= STEADINESS * len(pairs) > 0


def _largest(trace: Trace, phase: str) -> CallCount | None:
    """The longest container that the growing phase works on."""
    calls = [call for call in trace.calls_named(*GROWING_CALLS) if call.phase == phase]
    calls = [call for call in calls if call.largest >= LARGE_CONTAINER]
    return max(calls, key=lambda call: call.largest, default=None)
