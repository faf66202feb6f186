"""Which clock a trace is told in: wall-clock, or processor time where other programs kept the loop from running.

Shares by wall-clock are those of the moments at which a busy machine happened to take the core away. What the loop's
thread computed, and what it waited for by its own doing, stays what it is on a quiet machine; so on a busy one every
figure is put on that clock, once, here: rules and reports then read one clock, whichever it is.

What a loop only waits for is not stretched by the queue, and what it computes is: so what a remedy against waiting
gains on a busy machine is reckoned by the wall clock, here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from hotloop.doctor.trace import OUTSIDE, PROCESSOR, QUEUED, UPDATE, WAIT, LineCost, Slice, StackCost, Trace

BUSY = 0.1
"""Of loop time in the queue for a core: less does not change what comes first."""
OWN_DOING, WITH_WORKERS = 0.85, 0.6
"""Of all cores' time used by the script itself: it is its own threads and workers that stand in the queue then. Workers
use less of it, since they rest while the loop acts and learns."""
ALONE = 1.5
"""Times what the loop's thread computed that all threads of the script may have, the recording's own work among it."""

Cost = TypeVar("Cost", LineCost, StackCost)


def with_clock(trace: Trace) -> Trace:
    """The trace as it is, or on the processor's clock where other programs had the core for a tenth of the loop."""
    if not kept_from_running(trace):
        return trace
    slept = _slept(trace)
    ratios = {phase: _ratio(trace.processor, seconds, phase, slept) for phase, seconds in trace.phases.items()}
    phases = {phase: seconds * ratios[phase] for phase, seconds in trace.phases.items()}
    phases[QUEUED] = trace.seconds - sum(phases.values())
    parts = _parts(trace, phases.get(UPDATE, 0.0), slept)
    return replace(
        trace,
        clock=PROCESSOR,
        phases=phases,
        update_parts=parts,
        lines=_fitted(trace.lines, ratios, parts),
        beneath=_fitted(trace.beneath, ratios, parts),
        stacks=_fitted(trace.stacks, ratios, parts),
        timeline=tuple(_on_processor(part, slept) for part in trace.timeline),
        warm_up=tuple(_on_processor(part, slept) for part in trace.warm_up),
        notes=(*trace.notes, _note(trace)),
    )


def kept_from_running(trace: Trace) -> bool:
    """Whether other programs, not threads and workers of its own, had the core for a tenth of the loop or more."""
    loop = trace.loop_seconds
    if not trace.processor or loop <= 0:
        return False
    cores = max(1, trace.machine.get("cores") or 1)
    own = trace.counts.own_threads_seconds + trace.counts.worker_seconds
    most = WITH_WORKERS if trace.counts.worker_seconds else OWN_DOING
    return trace.counts.queued_seconds >= BUSY * loop and own < most * cores * loop


def gain_by_the_wall(trace: Trace, computes: float, sleeps: float) -> float:
    """How many times faster the loop is by the wall clock of a busy machine if it computes for so many seconds, which
    the queue for a core stretches as it did before the loop, and sleeps for so many, which it does not."""
    return trace.wall_seconds / max(1e-9, crowding(trace) * computes + sleeps)


def crowding(trace: Trace) -> float:
    """Wall-clock seconds that a second of computing takes here: by the loop's own queue; where it has threads and
    workers of its own to stand in the queue with, by that before the loop, if it was told."""
    counts = trace.counts
    computed = sum(trace.processor.get(phase, 0.0) for phase in trace.phases)
    alone = not counts.worker_seconds and counts.own_threads_seconds <= ALONE * computed
    if computed <= 0 or (counts.crowding and not alone):
        return max(1.0, counts.crowding)
    return 1.0 + counts.queued_seconds / computed


def crowding_text(trace: Trace) -> str:
    """By which clock a gain is told."""
    return f" By the wall clock of this busy machine, where a second of computing takes {crowding(trace):.1f}."


def processor_seconds(trace: Trace, phase: str) -> float | None:
    """What the loop's thread computed in a phase; None where it was not measured."""
    if phase == WAIT:
        return 0.0
    return trace.processor.get(phase)


def _slept(trace: Trace) -> float:
    """Of the time that the loop neither computed nor is known to have waited: the part that it slept by its own doing,
    for pages from a disk above all. The rest is the queue."""
    asleep = trace.counts.asleep_seconds - trace.phases.get(WAIT, 0.0)
    gone = [(1 - _ratio(trace.processor, seconds, phase)) * seconds for phase, seconds in trace.phases.items()]
    return min(1.0, max(0.0, asleep) / max(1e-9, sum(gone)))


def _ratio(processor: Mapping[str, float], seconds: float, phase: str, slept: float = 0.0) -> float:
    """Processor time and own sleep over wall-clock, at most 1. Waiting is the loop's own doing and stays; what is
    outside too."""
    if phase in OUTSIDE or phase == WAIT or phase not in processor or seconds <= 0:
        return 1.0
    computed = min(1.0, processor[phase] / seconds)
    return computed + slept * (1 - computed)


def _parts(trace: Trace, whole: float, slept: float) -> dict[str, float]:
    """Of the update: each on the processor's clock, together what the update takes by it."""
    parts = {
        part: seconds * _ratio(trace.processor, seconds, part, slept) for part, seconds in trace.update_parts.items()
    }
    total = sum(parts.values())
    return {part: seconds * whole / total for part, seconds in parts.items()} if total else parts


def _fitted(costs: Sequence[Cost], ratios: Mapping[str, float], parts: Mapping[str, float]) -> tuple[Cost, ...]:
    """Samples on the processor's clock by phase; those of the update by its parts, together as much as before. Looks
    come when others let the core go: a program that spent an eighth of its time in backwards was hardly seen in one."""
    scaled = [replace(cost, seconds=cost.seconds * ratios.get(cost.phase, 1.0)) for cost in costs]
    learning = [cost for cost in scaled if cost.phase == UPDATE]
    sampled: dict[str, float] = {}
    for cost in learning:
        sampled[cost.part] = sampled.get(cost.part, 0.0) + cost.seconds
    if not sampled or any(part not in parts or seconds <= 0 for part, seconds in sampled.items()):
        return tuple(scaled)
    together = sum(sampled.values()) / max(1e-9, sum(parts[part] for part in sampled))
    fit = {part: together * parts[part] / seconds for part, seconds in sampled.items()}
    return tuple(
        replace(cost, seconds=cost.seconds * fit[cost.part]) if cost.phase == UPDATE else cost for cost in scaled
    )


def _on_processor(part: Slice, slept: float) -> Slice:
    phases = {phase: seconds * _ratio(part.processor, seconds, phase, slept) for phase, seconds in part.phases.items()}
    gone = sum(part.phases.values()) - sum(phases.values())
    return replace(part, phases=phases, seconds=max(0.0, part.seconds - gone))


def _note(trace: Trace) -> str:
    share = min(100.0, 100 * trace.counts.queued_seconds / trace.loop_seconds)
    return (
        f"the machine was busy with other programs: the loop stood {share:.0f} % of its time in the queue for a core. "
        "Times and shares are processor time, and what it waited for by itself; the queue is left out"
    )
