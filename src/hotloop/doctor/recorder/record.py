"""Runs a script as often as the plan asks, each time in a child process of its own, and puts the traces together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.core.keeper import Keeper
from hotloop.doctor.growth import with_growth
from hotloop.doctor.trace import UPDATE, Subject, Trace, read_trace

TIMING, COUNTING, THREADS, OPERATORS = "timing", "counting", "threads", "operators"
PASSES = (TIMING, COUNTING, THREADS, OPERATORS)


@dataclass(frozen=True, kw_only=True)
class ScriptPlan:
    """What to record of a foreign script and for how long."""

    seconds: float = 30.0
    """Loop time to record, in seconds from the first env step; above 0."""
    env_steps: int | None = None
    """Stop after this many env steps, whichever comes first; at least 1."""
    env_classes: tuple[str, ...] = ()
    """Envs to watch besides what is found: `module:Class`, `Class`, `Class.method` or `function`."""
    counting: bool = True
    """Run once more to count calls."""
    counting_seconds: float = 20.0
    """Loop time of the counting run, in seconds; above 0."""
    counting_env_steps: int = 2_000
    """Env steps of the counting run once updates have begun; at least 1."""
    threads: bool = True
    """Run once more to compare thread counts, where PyTorch is used."""
    threads_seconds: float = 12.0
    """Loop time of the thread comparison, in seconds from the first update; above 0."""
    ops: bool = False
    """Run once more under PyTorch's profiler for the dearest operators."""
    patience: float = 180.0
    """Seconds to wait for the first env step before giving up; above 0."""
    interval: float = 0.01
    """Seconds between two stack samples; 0.001 to 0.1."""

    def __post_init__(self) -> None:
        for name in ("seconds", "counting_seconds", "threads_seconds", "patience"):
            if getattr(self, name) <= 0:
                raise SettingsError(f"{name} is {getattr(self, name)}, expected above 0", "give a time in seconds")
        if self.counting_env_steps < 1 or (self.env_steps is not None and self.env_steps < 1):
            raise SettingsError("a bound of less than one env step", "give a number of env steps of at least 1")
        if not 0.001 <= self.interval <= 0.1:
            raise SettingsError(f"interval is {self.interval}, expected 0.001 to 0.1", "0.01 suits most scripts")


@dataclass(frozen=True, kw_only=True)
class Order:
    """What one child has to do: the note that the parent hands to it."""

    script: str
    """As the user wrote it."""
    arguments: tuple[str, ...]
    kind: str
    """One of PASSES."""
    plan: ScriptPlan
    seconds: float
    """Loop time."""
    env_steps: int | None
    result: str
    """Where the trace goes."""
    skip_env_steps: int = 0
    """Count calls only after so many env steps: the warm-up is not the loop."""
    update_share: float = 1.0
    """The part of loop time that updates take."""
    learns: bool = True
    """Whether updates were seen in the timing pass."""
    burst_seconds: float = 0.0
    """How long the updates between two env calls take together."""
    flush_denormals: bool = False
    """Whether the thread comparison also tries flushing denormals."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def read_order(path: Path) -> Order:
    data = json.loads(path.read_text())
    plan = data["plan"] | {"env_classes": tuple(data["plan"]["env_classes"])}
    return Order(**data | {"plan": ScriptPlan(**plan), "arguments": tuple(data["arguments"])})


CHILD = Path(__file__).with_name("child.py")
STDERR = 2
Say = Callable[[str], None]


def record_script(path: Path, arguments: Sequence[str], plan: ScriptPlan, say: Say) -> Trace:
    """The trace of the user's program, run unmodified with these arguments."""
    if not path.is_file():
        raise SettingsError(f"there is no script at {path}", "give the path of a Python file")
    recorder = _Recorder(path, tuple(arguments), plan, say)
    trace = recorder.run(TIMING, plan.seconds, plan.env_steps)
    if trace.counts.env_steps and trace.subject.ending != "interrupted":
        trace = recorder.deepen(trace)
    return with_growth(trace)


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
