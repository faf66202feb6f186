"""The timeline in Chrome's trace format, which ui.perfetto.dev and chrome://tracing open.

A slice says how long each phase took in it, not in which order: the phases are drawn one after another, in proportion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hotloop.doctor.trace import PHASES, START_UP, Slice, Trace

Event = dict[str, Any]
_PROCESS, _PHASES, _SLICES = 1, 1, 2
_COUNTERS = ("env steps/s", "updates/s")


def chrome_trace(trace: Trace) -> dict[str, Any]:
    return {
        "traceEvents": [*_names(trace), *_start_up(trace), *_loop(trace)],
        "displayTimeUnit": "ms",
        "otherData": {"subject": trace.subject.name, "seconds": f"{trace.seconds:.3f}"},
    }


def _names(trace: Trace) -> Iterator[Event]:
    yield _name("process_name", 0, f"hotloop doctor: {trace.subject.name}")
    yield _name("thread_name", _PHASES, "phases")
    yield _name("thread_name", _SLICES, "slices of the loop")


def _name(what: str, thread: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": thread, "ts": 0, "args": {"name": name}}


def _start_up(trace: Trace) -> Iterator[Event]:
    seconds = trace.phases.get(START_UP, 0.0)
    if seconds > 0:
        yield _stretch(START_UP, _PHASES, 0.0, seconds, {})


def _loop(trace: Trace) -> Iterator[Event]:
    for one in trace.timeline:
        yield from _slice(one, trace.phases.get(START_UP, 0.0) + one.start_seconds)


def _slice(one: Slice, start: float) -> Iterator[Event]:
    counts = {"env steps": one.env_steps, "episodes": one.episodes, "updates": one.updates}
    yield _stretch(f"{one.env_steps} env steps, {one.updates} updates", _SLICES, start, one.seconds, counts)
    for name, count in zip(_COUNTERS, (one.env_steps, one.updates), strict=True):
        yield _counter(name, start, count / one.seconds if one.seconds > 0 else 0.0)
    for name in sorted(one.phases, key=lambda name: PHASES.index(name) if name in PHASES else len(PHASES)):
        seconds = one.phases[name]
        if seconds > 0:
            yield _stretch(name, _PHASES, start, seconds, {})
            start += seconds


def _stretch(name: str, thread: int, start: float, seconds: float, arguments: dict[str, Any]) -> Event:
    place = {"ts": _us(start), "dur": _us(seconds), "pid": _PROCESS, "tid": thread}
    return {"ph": "X", "name": name, "cat": "doctor", **place, "args": arguments}


def _counter(name: str, at: float, value: float) -> Event:
    return {"ph": "C", "name": name, "pid": _PROCESS, "tid": 0, "ts": _us(at), "args": {"value": round(value, 3)}}


def _us(seconds: float) -> float:
    return round(1e6 * seconds, 3)
