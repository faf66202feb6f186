"""One pass over the script in this process, and the trace that is left of it however it ends."""

from __future__ import annotations

import threading
import traceback
from pathlib import Path
from typing import Any

from hotloop.doctor.facts import machine_facts
from hotloop.doctor.script.counting import CallCounter
from hotloop.doctor.script.guard import Guard
from hotloop.doctor.script.learning import learning_counts
from hotloop.doctor.script.library_hooks import install_hooks
from hotloop.doctor.script.lines import fit_to_phases, line_costs, stack_costs, waiting_seconds
from hotloop.doctor.script.notes import recording_notes
from hotloop.doctor.script.operators import OperatorWatch
from hotloop.doctor.script.pauses import Pauses
from hotloop.doctor.script.places import Places
from hotloop.doctor.script.plan import COUNTING, OPERATORS, THREADS, TIMING, Order, read_order
from hotloop.doctor.script.program import prepare, run_program
from hotloop.doctor.script.sampling import Sampler
from hotloop.doctor.script.toggling import Toggler
from hotloop.doctor.script.watch import LimitReached, Watch
from hotloop.doctor.script.workers import WorkerTime
from hotloop.doctor.trace import RECORDING, START_UP, Counts, Subject, Trace, write_trace


class Recording:
    def __init__(self, order: Order) -> None:
        self.order = order
        self.places = Places(order.script)
        self.watch = Watch(order.seconds, order.env_steps)
        self.sampler = Sampler(self.watch, order.plan.interval)
        self.counter = CallCounter(self.places)
        self.toggler = Toggler(self.watch, order)
        self.operators = OperatorWatch(self.watch)
        self.pauses = Pauses(self.watch)
        self.workers = WorkerTime()
        self.before_counting: dict[str, int] = {}
        self._saved = threading.Lock()

    def start(self) -> None:
        self.classes, self.torch_hooks = install_hooks(self.watch, self.order.plan.env_classes)
        self.watch.on_limit = self.stop_script
        {TIMING: self._time, COUNTING: self._count, THREADS: self._toggle, OPERATORS: self._operate}[self.order.kind]()
        Guard(self.watch, self.order.plan.patience, self.save).start()

    def _time(self) -> None:
        self.watch.sink, self.watch.fresh = self.sampler.sink, self.sampler.fresh
        self.watch.batch = 256
        self.watch.on_begin.append(self.workers.begin)
        self.pauses.start()
        self.sampler.start()

    def _count(self) -> None:
        self.watch.sink, self.watch.notes = self.counter.sink, self.counter.notes
        self.watch.on_env = self._start_counting
        self.watch.limit = None
        self.watch.seconds = self.order.plan.seconds + 2.0 * self.order.seconds

    def _start_counting(self, _now: float) -> None:
        if self.watch.env_steps >= self.order.skip_env_steps:
            self.watch.on_env = None
            self.before_counting = self._totals()
            self.watch.deadline = self.watch.clock() + self.order.seconds
            if self.order.env_steps is not None:
                self.watch.limit = self.watch.env_steps + self.order.env_steps
            self.counter.start()

    def _toggle(self) -> None:
        self.watch.on_env, self.watch.on_update = self.toggler.on_env, self.toggler.on_update
        self.watch.seconds = 3.0 * self.order.seconds + 60.0

    def _operate(self) -> None:
        self.watch.on_env = self.operators.on_env

    def stop_script(self) -> None:
        """Enough was seen. A script that catches even this goes on unrecorded until the guard ends it."""
        self.watch.stopping = True
        self.save("limit", None, "")
        raise LimitReached

    def save(self, ending: str, exit_code: int | None, error: str) -> None:
        """Once; whoever comes first."""
        if not self._saved.acquire(blocking=False):
            return
        arguments = self.order.arguments
        subject = Subject(
            kind="script", name=self.order.script, arguments=arguments, ending=ending, exit_code=exit_code, error=error
        )
        try:
            self._stop_looking()
            trace = self._trace(subject)
        except Exception as fault:
            traceback.print_exc()
            note = f"the recording could not be evaluated: {type(fault).__name__}: {fault}"
            trace = Trace(subject=subject, machine={}, seconds=0.0, phases={}, notes=(note,))
        write_trace(trace, Path(self.order.result))

    def _stop_looking(self) -> None:
        if self.order.kind == COUNTING:
            self.counter.stop()
        self.watch.finish()
        self.sampler.stop()
        self.operators.stop()

    def _trace(self, subject: Subject) -> Trace:
        watch, kind = self.watch, self.order.kind
        seconds = watch.ended - watch.opened
        phases = {**watch.attribution.phases, RECORDING: watch.attribution.recording} if watch.begun else {}
        start_up = (watch.began if watch.begun else watch.ended) - watch.opened + phases.pop(START_UP, 0.0)
        charged = fit_to_phases(self.sampler.charged, phases) if kind == TIMING else {}
        return Trace(
            subject=subject,
            machine=machine_facts(),
            seconds=seconds,
            phases={START_UP: start_up, **phases},
            update_parts=watch.attribution.parts,
            counts=self._counts(charged),
            calls=tuple(self.counter.rows()) if kind == COUNTING else (),
            counted=Counts(**self._counted()) if kind == COUNTING else Counts(),
            lines=tuple(line_costs(charged, self.places)),
            stacks=tuple(stack_costs(charged, self.places)),
            timeline=tuple(watch.timeline.slices),
            experiments=tuple(self.toggler.experiments()),
            operators=tuple(self.operators.costs()),
            notes=tuple(recording_notes(watch, self.sampler, self.order)),
        )

    def _totals(self) -> dict[str, Any]:
        watch, seen = self.watch, self.watch.attribution
        totals = {"env_steps": watch.env_steps, "env_calls": watch.env_calls, "episodes": watch.episodes}
        return totals | seen.counts | {"update_bursts": seen.bursts}

    def _counted(self) -> dict[str, Any]:
        totals = self._totals()
        batch_size = totals.pop("batch_size")
        counted = {name: count - self.before_counting.get(name, 0) for name, count in totals.items()}
        return counted | {"batch_size": batch_size, "envs": len(self.watch.envs)}

    def _counts(self, charged: Any) -> Counts:
        return Counts(
            **self._totals(),
            **learning_counts(self.torch_hooks, self.watch.attribution.learning_modules),
            envs=len(self.watch.envs),
            waiting_seconds=waiting_seconds(charged),
            worker_seconds=self.workers.seconds,
            gc_seconds=self.pauses.seconds,
            gc_collections=self.pauses.collections,
        )


def record_here(order_path: Path) -> None:
    """The whole life of a child: run the script, save, leave with the script's own exit code."""
    order = read_order(order_path)
    recording = Recording(order)
    prepare(order.script, order.arguments)
    names = [name.rpartition(":")[2] for name in order.plan.env_classes]
    recording.start()
    ending, code, error = run_program(
        order.script, names, lambda function: recording.classes.env_step(function, sure=True)
    )
    recording.save(ending, code, error)
    raise SystemExit(code or 0)
