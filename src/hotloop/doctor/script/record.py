"""Runs a script as often as the plan asks, each time in a child process of its own, and puts the traces together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.core.keeper import Keeper
from hotloop.doctor.growth import growth_over_run
from hotloop.doctor.script.plan import COUNTING, OPERATORS, THREADS, TIMING, Order, ScriptPlan
from hotloop.doctor.trace import UPDATE, Subject, Trace, read_trace

CHILD = Path(__file__).with_name("child.py")
STDERR = 2
Say = Callable[[str], None]


def record_script(path: Path, arguments: Sequence[str], plan: ScriptPlan, say: Say) -> Trace:
    """The trace of the user's program, run unmodified with these arguments."""
    if not path.is_file():
        raise SettingsError(f"there is no script at {path}", "give the path of a Python file")
    recorder = _Recorder(path, tuple(arguments), plan, say)
    trace = recorder.run(TIMING, plan.seconds, plan.env_steps)
    trace = replace(trace, growth=tuple(growth_over_run(trace.timeline)))
    if not trace.counts.env_steps or trace.subject.ending == "interrupted":
        return trace
    return recorder.deepen(trace)


class _Recorder:
    def __init__(self, path: Path, arguments: tuple[str, ...], plan: ScriptPlan, say: Say) -> None:
        self.path, self.arguments, self.plan, self.say = path, arguments, plan, say

    def deepen(self, trace: Trace) -> Trace:
        """The further passes that the plan asks for and the script allows."""
        learns = trace.counts.updates > 0
        if self.plan.counting:
            self.say("counting calls in a second run")
            counting = self._counting(trace)
            trace = replace(trace, calls=counting.calls, counted=counting.counted)
            if not counting.counted.env_steps:
                trace = _noted(trace, "the counting run saw no env step; nothing was counted")
        if self.plan.threads and (learns or trace.counts.act_forwards):
            self.say("comparing thread counts in a run of their own")
            tried = self.run(
                THREADS,
                self.plan.threads_seconds,
                None,
                flush_denormals=trace.counts.denormal_values > 0,
                learns=learns,
                update_share=trace.share(UPDATE),
                burst_seconds=trace.phases.get(UPDATE, 0.0) / max(1, trace.counts.update_bursts),
            )
            trace = replace(trace, experiments=(*trace.experiments, *tried.experiments))
            if not tried.experiments:
                trace = _noted(trace, "thread counts were not compared: too little was done in the time for it")
        if self.plan.ops and learns:
            self.say("asking PyTorch's profiler for operators in a run of their own")
            trace = replace(trace, operators=self.run(OPERATORS, self.plan.seconds, None).operators)
        return trace

    def _counting(self, trace: Trace) -> Trace:
        """Past the warm-up, over whole turns of acting and learning where they are short enough."""
        skip = env_steps_before_learning(trace)
        bursts = trace.counts.update_bursts
        turn = (trace.counts.env_steps - skip) / bursts if bursts else 1.0
        env_steps = round(turn * max(1, round(self.plan.counting_env_steps / turn)))
        env_steps = max(1, min(env_steps, trace.counts.env_steps - skip))
        return self.run(COUNTING, self.plan.counting_seconds, env_steps, skip_env_steps=skip)

    def run(
        self,
        kind: str,
        seconds: float,
        env_steps: int | None,
        **more: Any,
    ) -> Trace:
        """One pass; `more` are further fields of its order."""
        with tempfile.TemporaryDirectory(prefix="hotloop-doctor-") as folder:
            result = Path(folder) / "trace.json"
            order = Order(
                script=str(self.path),
                arguments=self.arguments,
                kind=kind,
                plan=self.plan,
                seconds=seconds,
                env_steps=env_steps,
                result=str(result),
                **more,
            )
            order.write(Path(folder) / "order.json")
            code = _wait([sys.executable, str(CHILD), str(Path(folder) / "order.json")])
            return read_trace(result.read_text()) if result.exists() else self._lost(code)

    def _lost(self, code: int) -> Trace:
        """The child died without a word: killed, or crashed in native code."""
        error = f"the process ended with {code} before anything could be saved"
        subject = Subject(
            kind="script", name=str(self.path), arguments=self.arguments, ending="crashed", exit_code=code, error=error
        )
        return Trace(subject=subject, machine={}, seconds=0.0, phases={}, notes=(error,))


def env_steps_before_learning(trace: Trace) -> int:
    """Env steps before the first slice with updates."""
    env_steps = 0
    for part in trace.timeline:
        if part.updates:
            return env_steps
        env_steps += part.env_steps
    return 0


def _wait(command: list[str]) -> int:
    """The script prints to the doctor's stderr; an interrupt reaches both, and the child is given time to save."""
    with Keeper() as keeper, subprocess.Popen(command, stdout=STDERR, env=os.environ) as child:
        keeper.watch(child.pid, signal.SIGKILL)
        try:
            return _waited(child)
        finally:
            keeper.forget(child.pid)


def _waited(child: subprocess.Popen[bytes]) -> int:
    for last in (False, True):
        try:
            return child.wait(timeout=20.0 if last else None)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            if last:
                break
    child.kill()
    return child.wait()


def _noted(trace: Trace, note: str) -> Trace:
    return replace(trace, notes=(*trace.notes, note))
