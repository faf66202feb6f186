"""Runs a script as often as the plan asks, each time in a child process of its own, and puts the traces together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.doctor.clocks import with_clock
from hotloop.doctor.facts import hardware_facts
from hotloop.doctor.growth import with_growth
from hotloop.doctor.recorder.order import COUNTING, OPERATORS, THREADS, TIMING, Order
from hotloop.doctor.recorder.phases import UPDATE
from hotloop.doctor.recorder.toggling import NOTHING_TO_COMPARE
from hotloop.doctor.script.plan import ScriptPlan
from hotloop.doctor.script.process import run_child
from hotloop.doctor.script.result import trace_of
from hotloop.doctor.trace import Subject, Trace

Say = Callable[[str], None]
WARM_UPDATES = 5
"""The first updates are slow, and no part of the steady state."""
LEAD = 10.0
"""Times the window that `after` may take to come."""


def record_script(path: Path, arguments: Sequence[str], plan: ScriptPlan, say: Say) -> Trace:
    """The trace of the user's program, run unmodified with these arguments."""
    if not path.is_file():
        raise SettingsError(f"there is no script at {path}", "give the path of a Python file")
    recorder = _Recorder(path, tuple(arguments), plan, say)
    lead = LEAD * plan.seconds if plan.after else 0.0
    trace = recorder.run(
        TIMING,
        plan.seconds,
        plan.env_steps,
        lead_seconds=lead,
        warm_updates=WARM_UPDATES,
        after_env_steps=plan.after,
    )
    if trace.counts.env_steps and trace.subject.ending != "interrupted":
        trace = recorder.deepen(trace)
    return with_growth(with_clock(trace))


class _Recorder:
    def __init__(self, path: Path, arguments: tuple[str, ...], plan: ScriptPlan, say: Say) -> None:
        self.path, self.arguments, self.plan, self.say = path, arguments, plan, say

    def deepen(self, trace: Trace) -> Trace:
        """The further runs that the plan asks for and the script allows."""
        learns = trace.counts.updates > 0
        if self.plan.counting:
            self.say("counting calls in a second run")
            trace = _with_calls(trace, self._counting(trace))
        if self.plan.threads and (learns or trace.counts.act_forwards):
            self.say("comparing thread counts in a run of their own")
            trace = _with_experiments(trace, self._threads(trace))
        if self.plan.ops and learns:
            self.say("asking PyTorch's profiler for operators in a run of their own")
            trace = replace(trace, operators=self.run(OPERATORS, self.plan.seconds).operators)
        return trace

    def _counting(self, trace: Trace) -> Trace:
        """Past the warm-up, over whole turns of acting and learning where they are short enough."""
        skip = env_steps_before_learning(trace)
        bursts = trace.counts.update_bursts
        told = trace.counts.env_steps - (0 if trace.counts.skipped_env_steps else skip)
        turn = told / bursts if bursts else 1.0
        env_steps = round(turn * max(1, round(self.plan.counting_env_steps / turn)))
        env_steps = max(1, min(env_steps, told))
        seconds = self.plan.counting_seconds
        lead = (LEAD if self.plan.after else 1.0) * self.plan.seconds + seconds
        return self.run(COUNTING, seconds, env_steps, lead_seconds=lead, skip_env_steps=skip)

    def _threads(self, trace: Trace) -> Trace:
        return self.run(
            THREADS,
            self.plan.threads_seconds,
            lead_seconds=2.0 * self.plan.threads_seconds + 60.0,
            flush_denormals=trace.counts.denormal_values > 0,
            learns=trace.counts.updates > 0,
            update_share=trace.share(UPDATE),
            burst_seconds=trace.phases.get(UPDATE, 0.0) / max(1, trace.counts.update_bursts),
        )

    def run(self, kind: str, seconds: float, env_steps: int | None = None, **more: Any) -> Trace:
        """One run of the script; `more` are further fields of its order."""
        order = Order(
            script=str(self.path),
            kind=kind,
            seconds=seconds,
            result="",
            arguments=self.arguments,
            env_steps=env_steps,
            env_classes=self.plan.env_classes,
            patience=self.plan.patience,
            interval=self.plan.interval,
            **more,
        )
        data, code = run_child(order)
        subject = Subject(kind="script", name=str(self.path), arguments=self.arguments)
        return _lost(subject, code) if data is None else trace_of(data, subject, hardware_facts())


def _lost(subject: Subject, code: int) -> Trace:
    """The child died without a word: killed, or crashed in native code."""
    error = f"the process ended with {code} before anything could be saved"
    ended = replace(subject, ending="crashed", exit_code=code, error=error)
    return Trace(subject=ended, machine={}, seconds=0.0, phases={}, notes=(error,))


def _with_calls(trace: Trace, counting: Trace) -> Trace:
    trace = replace(trace, calls=counting.calls, counted=counting.counted)
    if not counting.counted.env_steps:
        trace = _noted(trace, "the counting run saw no env step; nothing was counted")
    return trace


def _with_experiments(trace: Trace, tried: Trace) -> Trace:
    trace = replace(trace, experiments=(*trace.experiments, *tried.experiments))
    if not tried.experiments:
        nothing = NOTHING_TO_COMPARE in tried.notes
        why = (
            NOTHING_TO_COMPARE if nothing else "thread counts were not compared: too little was done in the time for it"
        )
        trace = _noted(trace, why)
    return trace


def env_steps_before_learning(trace: Trace) -> int:
    """Env steps before what is told, or before the first slice with updates."""
    if trace.counts.skipped_env_steps:
        return trace.counts.skipped_env_steps
    env_steps = 0
    for part in trace.timeline:
        if part.updates:
            return env_steps
        env_steps += part.env_steps
    return 0


def _noted(trace: Trace, note: str) -> Trace:
    return replace(trace, notes=(*trace.notes, note))
