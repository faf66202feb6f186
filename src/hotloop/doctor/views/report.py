"""The diagnosis as JSON: complete enough that a later one can be held against it.

The timeline in Chrome's trace format, which ui.perfetto.dev and chrome://tracing open.

A slice says how long each phase took in it, not in which order: the phases are drawn one after another, in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from hotloop.doctor.experiments import confirmed
from hotloop.doctor.finding import Finding, together
from hotloop.doctor.hottest import hottest_functions, hottest_lines, unexplained
from hotloop.doctor.port import port_command
from hotloop.doctor.roofline import roofline
from hotloop.doctor.trace import PHASES, START_UP, CallCount, Experiment, LineCost, Slice, Trace
from hotloop.doctor.views.summary import CostRow, cost_row, merged, phase_rows, rate, update_rows, verdict

MOST_SLICES, MOST_LINES, MOST_CALLS = 120, 200, 200


def report_json(trace: Trace, findings: Sequence[Finding]) -> dict[str, Any]:
    """Seconds of the phases sum to `seconds`; shares are of loop time, which start-up is no part of."""
    data: dict[str, Any] = json_safe(
        {
            "schema": trace.schema,
            "subject": asdict(trace.subject),
            "script_exit": trace.subject.exit_code,
            "verdict": verdict(trace, findings),
            "seconds": trace.seconds,
            "loop_seconds": trace.loop_seconds,
            "clock": trace.clock,
            "too_little_seen": trace.too_little,
            "nothing_to_judge": trace.nothing_to_judge,
            "machine": trace.machine,
            "phases": _costs(phase_rows(trace)),
            "update": _costs(update_rows(trace)),
            "matrix_speed": found.as_json() if (found := roofline(trace)) else None,
            "counts": _counts(trace),
            "growth": [asdict(growth) for growth in trace.growth],
            "experiments": [_experiment(experiment, findings) for experiment in trace.experiments],
            "untried": [asdict(one) for one in trace.untried],
            "operators": [asdict(operator) for operator in trace.operators],
            "findings": [finding.as_json() for finding in findings],
            "together": together(findings, trace),
            "hottest_lines": [asdict(place) for place in hottest_lines(trace)],
            "hottest_functions": [asdict(place) for place in hottest_functions(trace)],
            "unexplained": [asdict(place) for place in unexplained(trace, findings)],
            "port": port_command(trace),
            "setup": asdict(trace.setup),
            "lines": [_line(trace, line) for line in most_expensive(trace.lines, MOST_LINES)],
            "sample_seconds": sample_seconds(trace),
            "timeline": _columns(merged(trace.timeline, MOST_SLICES)),
            "notes": list(trace.notes),
        }
    )
    return data


def _experiment(one: Experiment, findings: Sequence[Finding]) -> dict[str, Any]:
    """With the finding that it confirms, and what that had promised."""
    finding = confirmed(one, findings)
    told = {"confirms": finding.rule, "predicted_gain": finding.expected_gain} if finding else {}
    return asdict(one) | told


def json_safe(value: Any) -> Any:
    """Without NaN and infinity, which JSON does not know, and without types of other libraries."""
    if isinstance(value, dict):
        return {str(name): json_safe(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_safe(one) for one in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return str(value)


def sample_seconds(trace: Trace) -> float:
    """What one stack sample stands for, at most: the cheapest line or stack that was seen."""
    seen = [line.seconds for line in trace.lines] + [stack.seconds for stack in trace.stacks]
    return min((seconds for seconds in seen if seconds > 0), default=0.0)


def most_expensive(lines: Iterable[LineCost], at_most: int) -> list[LineCost]:
    return sorted(lines, key=lambda line: -line.seconds)[:at_most]


def _costs(rows: Iterable[CostRow]) -> dict[str, Any]:
    """What was not measured is left out."""
    unmeasured = ("processor_seconds", None)
    return {
        row.name: {name: value for name, value in vars(row).items() if name != "name" and (name, value) != unmeasured}
        for row in rows
    }


def _line(trace: Trace, line: LineCost) -> dict[str, Any]:
    cost = cost_row(trace, line.phase, line.seconds)
    return asdict(line) | {"share": cost.share, "us_per_env_step": cost.us_per_env_step}


def _counts(trace: Trace) -> dict[str, Any]:
    counts = trace.counts
    calls = sorted(trace.calls, key=lambda call: -call.count)[:MOST_CALLS]
    return asdict(counts) | {
        "env_steps_per_second": rate(trace, counts.env_steps),
        "updates_per_second": rate(trace, counts.updates),
        "updates_per_env_step": counts.updates / counts.env_steps if counts.env_steps else None,
        "env_steps_per_episode": counts.env_steps / counts.episodes if counts.episodes else None,
        "envs_at_once": trace.envs_at_once,
        "calls": [_call(trace, call) for call in calls],
    }


def _call(trace: Trace, call: CallCount) -> dict[str, Any]:
    rates = {"per_env_step": trace.per_env_step([call]), "per_update": trace.per_update([call])}
    return asdict(call) | {name: round(value, 4) for name, value in rates.items()}


def _columns(slices: Sequence[Slice]) -> dict[str, Any]:
    """One list per quantity: a third of the size of one object per slice."""
    names = dict.fromkeys(name for one in slices for name in one.phases)
    return {
        "start_seconds": [round(one.start_seconds, 6) for one in slices],
        "seconds": [round(one.seconds, 6) for one in slices],
        "env_steps": [one.env_steps for one in slices],
        "episodes": [one.episodes for one in slices],
        "updates": [one.updates for one in slices],
        "phases": {name: [round(one.phases.get(name, 0.0), 6) for one in slices] for name in names},
    }


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
