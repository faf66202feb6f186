"""Runs a script as often as the plan asks, each time in a child process of its own, and puts the traces together.

Whatever happens to a run, the trace of what was seen comes back, with a note of what is missing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.doctor.clocks import with_clock
from hotloop.doctor.experiments import TrialInterval
from hotloop.doctor.facts import hardware_facts
from hotloop.doctor.growth import with_growth
from hotloop.doctor.recorder.order import (
    CHANGES_LEARNING,
    COUNTING,
    EXPERIMENTS,
    KEEPING,
    NO_CHANGE,
    OPERATORS,
    THREADS,
    TIMING,
    UPDATE,
    Order,
)
from hotloop.doctor.recorder.toggling import NOTHING_TO_COMPARE
from hotloop.doctor.script import copies
from hotloop.doctor.script.arms import parse_arm, try_arm
from hotloop.doctor.script.plan import ScriptPlan
from hotloop.doctor.script.process import Ended, Where, run_child
from hotloop.doctor.script.result import trace_of
from hotloop.doctor.trace import Experiment, Subject, Trace, Untried

Say = Callable[[str], None]
WARM_UPDATES = 5
"""The first updates are slow, and no part of the steady state."""
LEAD, LEAD_AFTER = 1.0, 10.0
"""Times the window that the run for it may take longer for the warm-up; and that `after` may take to come."""
LEAST_LEAD = 5.0
"""Seconds that a further run may take for the warm-up, however short it was in the first."""
WHOLE, LEAST_PART = 3.0, 0.1
"""Times the window that the loop may run in all, experiments and `after` aside; and of a further run at least."""
COUNTED_SLOWER = 4.0
"""Times as long as in the first run that a turn of acting and learning may take while its calls are counted."""
PURPOSE = {
    TIMING: "timing phases and lines",
    COUNTING: "counting calls",
    THREADS: "comparing thread counts",
    OPERATORS: "asking PyTorch's profiler for operators",
    EXPERIMENTS: "timing it in turns",
}
CHANGES = {
    KEEPING: ("experiments that keep the computation", 7),
    CHANGES_LEARNING: ("experiments that change learning", 5),
}
"""What is tried in a run of its own, and how many there are of them."""
LEARNED_OTHERWISE = (
    "experiments that change learning were made in a run of their own: after them the program is not what it was"
)
MISSING = {
    COUNTING: "calls were not counted, so rules that need counts are silent",
    THREADS: "thread counts were not compared",
    OPERATORS: "operators were not recorded",
    EXPERIMENTS: "experiments were not made",
}


def record_script(path: Path, arguments: Sequence[str], plan: ScriptPlan, say: Say) -> Trace:
    """The trace of the user's program, run unmodified with these arguments."""
    if not path.is_file():
        raise SettingsError(f"there is no script at {path}", "give the path of a Python file")
    stdin = _Stdin()
    recorder = _Recorder(path, tuple(arguments), plan, say)
    trace = recorder.first()
    if trace.counts.env_steps:
        trace = recorder.deepen(trace, stdin)
    return with_growth(with_clock(trace))


class _Recorder:
    def __init__(self, path: Path, arguments: tuple[str, ...], plan: ScriptPlan, say: Say) -> None:
        self.path, self.arguments, self.plan, self.say = path, arguments, plan, say
        self.place = copies.workplace_of(path)
        self.where = Where(python=plan.python, tell=say)
        self.runs = 0
        self.left: dict[str, Any] | None = None
        """What the last run left."""
        self.new: list[str] = []
        """Files that the first run has written and that were not there before it."""
        self.interrupted = False
        self.spent = 0.0
        """Seconds that the loop has run so far, all runs together."""

    def first(self) -> Trace:
        """In the script's own folder, with its output shown; notes which files it wrote."""
        before = copies.look(self.place.folder)
        plan = self.plan
        lead = (LEAD_AFTER if plan.after else LEAD) * plan.seconds
        more: dict[str, Any] = {"lead_seconds": lead, "warm_updates": WARM_UPDATES, "after_env_steps": plan.after}
        more["late_seconds"] = plan.watch_seconds
        trace = self.run(TIMING, plan.seconds, plan.env_steps, **more)
        after = copies.look(self.place.folder)
        self.new, names = copies.new(before, after), copies.written(before, after)
        return _noted(trace, copies.written_note(names)) if names else trace

    def deepen(self, trace: Trace, stdin: _Stdin) -> Trace:
        """The further runs that the plan asks for and the script allows, in a copy of the folder."""
        wanted = [kind for kind in (COUNTING, THREADS, OPERATORS, EXPERIMENTS) if self._wants(kind, trace)]
        if not wanted:
            return trace
        if self.interrupted:
            return _noted(trace, *(f"interrupted: {MISSING[kind]}" for kind in wanted))
        with self._elsewhere() as where:
            if where is None:
                return _noted(trace, *(f"{TOO_LARGE}: {MISSING[kind]}" for kind in wanted))
            for kind in wanted:
                self.where = replace(where, stdin=stdin.again())
                trace = _noted(trace, f"interrupted: {MISSING[kind]}") if self.interrupted else self._more(kind, trace)
        return trace

    def _wants(self, kind: str, trace: Trace) -> bool:
        learns = trace.counts.updates > 0
        return {
            COUNTING: self.plan.counting,
            THREADS: self.plan.threads and (learns or trace.counts.act_forwards > 0),
            OPERATORS: self.plan.ops and learns,
            EXPERIMENTS: self.plan.experiments or bool(self.plan.arms),
        }[kind]

    @contextlib.contextmanager
    def _elsewhere(self) -> Iterator[Where | None]:
        where = replace(self.where, quiet=True)
        if self.plan.in_place:
            yield where
            return
        with copies.script_in_copy(self.path, self.new) as found:
            if found is None:
                yield None
                return
            self.path, folder = found
            yield replace(where, folder=folder)

    def _more(self, kind: str, trace: Trace) -> Trace:
        if kind == EXPERIMENTS:
            return self._try_arms(self._experiments(trace) if self.plan.experiments else trace)
        more = {COUNTING: self._counting, THREADS: self._threads, OPERATORS: self._operators}[kind](trace)
        if more is None:
            return _noted(trace, f"{MISSING[kind]}: no time was left for a further run (--seconds S gives more)")
        if kind == COUNTING:
            trace = replace(trace, calls=more.calls, counted=more.counted)
            missing = not more.counted.env_steps
        elif kind == THREADS:
            trace = replace(trace, experiments=(*trace.experiments, *more.experiments))
            missing = not more.experiments
        else:
            trace, missing = replace(trace, operators=more.operators), not more.operators
        return _noted(trace, *_why_missing(kind, more, self.interrupted)) if missing else trace

    def _counting(self, trace: Trace) -> Trace | None:
        """Past the warm-up, over whole turns of acting and learning where they are short enough. Where a rollout is
        learned from the first turn will do."""
        counts = trace.counts
        skip = 0 if trace.learns_from_rollouts else env_steps_before_learning(trace)
        bursts = counts.update_bursts
        told = counts.env_steps - (0 if counts.skipped_env_steps else skip)
        turn = told / bursts if bursts else 1.0
        env_steps = round(turn * max(1, round(self.plan.counting_env_steps / turn)))
        env_steps = max(1, min(env_steps, told))
        seconds = max(self.plan.time_to_count, COUNTED_SLOWER * trace.loop_seconds * turn / max(1, told))
        lead = LEAST_LEAD if trace.learns_from_rollouts else _lead(trace)
        return self.further(COUNTING, seconds, lead, env_steps, skip_env_steps=skip)

    def _threads(self, trace: Trace) -> Trace | None:
        return self.further(
            THREADS,
            self.plan.time_to_compare,
            _lead(trace),
            flush_denormals=trace.counts.denormal_values > 0,
            learns=trace.counts.updates > 0,
            update_share=trace.share(UPDATE),
            burst_seconds=trace.phases.get(UPDATE, 0.0) / max(1, trace.counts.update_bursts),
        )

    def _operators(self, trace: Trace) -> Trace | None:
        return self.further(OPERATORS, self.plan.time_for_operators, _lead(trace))

    def further(
        self, kind: str, seconds: float, lead: float, env_steps: int | None = None, **more: Any
    ) -> Trace | None:
        """One more run, within what is left of the time that all may take; None where that is too little. The lead is a
        bound: most of it is hardly ever used, so that of a short time it takes no more than half."""
        window = self.plan.seconds
        left = WHOLE * window - self.spent - self.plan.overtime
        if self.plan.after or self.plan.ops:
            left = float("inf")
        seconds = min(seconds, left - min(lead, LEAST_LEAD, left / 2))
        if seconds < LEAST_PART * window:
            return None
        return self.run(kind, seconds, env_steps, lead_seconds=min(lead, left - seconds), **more)

    def _experiments(self, trace: Trace) -> Trace:
        """Those that compute the same, and in a run of their own those that change learning: after these the program is
        no longer what it was. Both in the copy, and each with a control."""
        where = self.where
        self.where = replace(where, tell=lambda name: self.say(f"  trying: {name}"))
        for changes, (purpose, count) in CHANGES.items():
            if self.interrupted:
                break
            seconds, learns = count * self.plan.time_to_try, trace.counts.updates > 0
            more = self.run(
                EXPERIMENTS, seconds, purpose=purpose, lead_seconds=_lead(trace), learns=learns, changes=changes
            )
            notes = [] if more.experiments or more.untried else _why_missing(EXPERIMENTS, more, self.interrupted)
            found, untried = (*trace.experiments, *more.experiments), (*trace.untried, *_ended_early(more))
            trace = _noted(replace(trace, experiments=found, untried=untried), *notes)
            if changes == CHANGES_LEARNING and not notes:
                made = "in its own folder" if self.plan.in_place else "in a copy of its folder"
                trace = _noted(trace, f"{LEARNED_OTHERWISE}, {made}")
        self.where = where
        return trace

    def _try_arms(self, trace: Trace) -> Trace:
        own = self.arguments
        order: dict[str, Any] = {"lead_seconds": _lead(trace), "learns": trace.counts.updates > 0, "changes": NO_CHANGE}

        def run(more: Sequence[str], purpose: str) -> tuple[TrialInterval | None, str]:
            self.arguments = (*own, *more)
            seen = self.run(EXPERIMENTS, self.plan.time_to_try, purpose=purpose, **order)
            self.arguments = own
            whole = (self.left or {}).get("whole")
            if whole and whole[0] > 0:
                env_steps, seconds, processor, _ = whole
                return TrialInterval(env_steps, seconds, processor, 1), ""
            why = seen.subject.error or "it did not come to its loop in time"
            return None, "interrupted" if self.interrupted else why

        for arm in map(parse_arm, self.plan.arms):
            found = try_arm(arm, run)
            if isinstance(found, Experiment):
                trace = replace(trace, experiments=(*trace.experiments, found))
            else:
                trace = replace(trace, untried=(*trace.untried, found))
        return trace

    def run(self, kind: str, seconds: float, env_steps: int | None = None, purpose: str = "", **more: Any) -> Trace:
        """One run of the script; `more` are further fields of its order."""
        self.runs += 1
        purpose = purpose or PURPOSE[kind]
        self.say(f"run {self.runs} of {self.plan.runs}: {purpose}, {seconds:.3g} s of the loop")
        order = Order(
            script=str(self.path),
            module=self.plan.module,
            kind=kind,
            seconds=seconds,
            result="",
            arguments=self.arguments,
            env_steps=env_steps,
            env_classes=self.plan.env_classes,
            patience=self.plan.patience,
            alone_after=self.plan.alone_after,
            overtime=self.plan.overtime,
            interval=self.plan.interval,
            **more,
        )
        ended = run_child(order, self.where)
        self.spent += ended.loop_seconds
        self.left = ended.data
        trace = _trace(ended, Subject(kind="script", name=str(self.path), arguments=self.arguments))
        self.interrupted = ended.interrupted or trace.subject.ending == "interrupted"
        return trace


def _trace(ended: Ended, subject: Subject) -> Trace:
    """However the run ended: with what it had written down by then, and how that came to be all."""
    if ended.data is None:
        error = f"the process ended with {ended.code} before anything could be saved"
        lost = replace(subject, ending=_ending(ended), exit_code=ended.code, error=error)
        return Trace(subject=lost, machine={}, seconds=0.0, phases={}, notes=(error,))
    trace = trace_of(ended.data, subject, hardware_facts())
    if ended.whole:
        return _as_the_process_ended(trace, ended)
    how = "it did not end within its limit and was killed" if ended.killed else f"the process ended with {ended.code}"
    error = trace.subject.error or how
    ending = trace.subject.ending or _ending(ended)
    trace = replace(trace, subject=replace(trace.subject, ending=ending, exit_code=ended.code, error=error))
    return _noted(trace, f"{error}: the figures are of the {trace.seconds:.1f} s that were written down before")


def _as_the_process_ended(trace: Trace, ended: Ended) -> Trace:
    """Its trace was written before what runs at exit, and that may end the process with another code."""
    subject = trace.subject
    own_way = subject.ending in ("finished", "exited", "crashed") and not (ended.killed or ended.interrupted)
    if not own_way or ended.code == subject.exit_code:
        return trace
    error = f"the code that runs at exit ended the process with {ended.code}"
    ending = "crashed" if ended.code < 0 or subject.ending == "crashed" else "exited"
    return replace(trace, subject=replace(subject, ending=ending, exit_code=ended.code, error=subject.error or error))


def _ending(ended: Ended) -> str:
    if ended.interrupted:
        return "interrupted"
    return "limit" if ended.killed else "crashed"


def _ended_early(more: Trace) -> Iterator[Untried]:
    """What did not apply; where the program failed while something was tried, that it did."""
    for number, one in enumerate(more.untried):
        failed = more.subject.ending == "crashed" and one.reason.startswith("not tried for long enough")
        error = f"the program failed while it was tried: {more.subject.error}"
        yield replace(one, reason=error) if failed and number == len(more.untried) - 1 else one


def _why_missing(kind: str, more: Trace, interrupted: bool) -> list[str]:
    if NOTHING_TO_COMPARE in more.notes:
        return [NOTHING_TO_COMPARE]
    if interrupted:
        why = "interrupted"
    elif more.subject.error:
        why = f"the run for it ended early ({more.subject.error})"
    elif not more.counts.env_steps:
        why = "the run for it saw no env step"
    else:
        why = "too little was done in the time for it"
    return [f"{MISSING[kind]}: {why}"]


TOO_LARGE = (
    f"the script's folder has more than {copies.MOST_BYTES >> 20} MB or {copies.MOST_FILES} files, too much to copy"
    " for a further run (--in-place runs it there)"
)


def _lead(trace: Trace) -> float:
    """Loop time that the warm-up may take: what it took in the first run, and half as much again."""
    before = sum(part.seconds for part in trace.warm_up)
    for part in trace.timeline if not trace.warm_up else ():
        if part.updates:
            break
        before += part.seconds
    return LEAST_LEAD + 1.5 * before if trace.counts.updates else LEAST_LEAD


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


def _noted(trace: Trace, *notes: str) -> Trace:
    return replace(trace, notes=(*trace.notes, *notes))


class _Stdin:
    """The script's input: a file can be read again by further runs; a terminal or a pipe belongs to the first alone."""

    def __init__(self) -> None:
        self._start: int | None = None
        with contextlib.suppress(OSError):
            self._start = os.lseek(0, 0, os.SEEK_CUR)

    def again(self) -> int:
        if self._start is None:
            return subprocess.DEVNULL
        os.lseek(0, self._start, os.SEEK_SET)
        return 0
