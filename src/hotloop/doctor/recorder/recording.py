"""One pass over the script in this process, and the trace that is left of it however it ends."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hotloop.doctor.facts import machine_facts
from hotloop.doctor.recorder.counting import CallCounter
from hotloop.doctor.recorder.lines import fit_to_phases, line_costs, stack_costs, waiting_seconds
from hotloop.doctor.recorder.meters import OperatorWatch, Pauses, WorkerTime, learning_counts
from hotloop.doctor.recorder.program import prepare, run_program
from hotloop.doctor.recorder.record import COUNTING, OPERATORS, THREADS, TIMING, Order, read_order
from hotloop.doctor.recorder.sampling import Places, Sampler
from hotloop.doctor.recorder.toggling import Toggler
from hotloop.doctor.recorder.torch_hooks import install_hooks
from hotloop.doctor.recorder.watch import LimitReached, Watch
from hotloop.doctor.trace import RECORDING, START_UP, Counts, Subject, Trace, write_trace


def recording_notes(watch: Watch, sampler: Sampler, order: Order) -> Iterator[str]:
    """What the reader should know: what was found, what the recording itself cost, what it missed."""
    if not watch.begun:
        yield (
            "no env step was seen: nothing with `step` and `reset` was called"
            " (an env stepped in another process or compiled by JAX cannot be seen); name yours with --env"
        )
        return
    if order.kind != TIMING:
        return
    yield f"envs found: {', '.join(sorted(set(watch.envs.values())))}"
    yield from _overhead(watch, sampler)
    if "torch" not in sys.modules:
        used = next((name for name in ("jax", "tensorflow", "keras") if name in sys.modules), "no PyTorch")
        yield f"{used}: acting and learning cannot be told apart; only env, replay and logging are split off"
    elif not watch.attribution.counts["updates"]:
        yield "no optimiser step was seen in the recorded time"


def _overhead(watch: Watch, sampler: Sampler) -> Iterator[str]:
    loop = max(1e-9, watch.ended - watch.began)
    share = (watch.attribution.recording + sampler.cost) / loop
    seen = f"{watch.events} events, {sampler.looks} samples"
    yield f"recording took {100 * share:.1f} % of the time ({seen}), which is not in the figures"
    how = "the alarm signal" if sampler.by_signal else "a thread, which sees only where the interpreter lock is free"
    yield f"lines sampled by {how} every {1000 * sampler.interval:g} ms; native time is charged to the line that called"
    if sampler.displaced:
        yield "the script uses the alarm signal itself: lines are incomplete"


GRACE = 6.0
"""Seconds that a stopped script has to clean up."""
OVERTIME = 10.0
"""Seconds beyond its bound that a loop may go without an env call, at which it would be stopped tidily."""


Save = Callable[[str, int | None, str], None]


class Guard:
    """Ends a script that will not end itself when the doctor has seen enough; loses nothing where it leaves early."""

    def __init__(self, watch: Watch, patience: float, save: Save) -> None:
        self.watch, self.patience, self.save = watch, patience, save
        self._leave = os._exit

    def start(self) -> None:
        os._exit = self._leave_after_saving
        threading.Thread(target=self._stand, daemon=True).start()

    def _leave_after_saving(self, status: int) -> Any:
        if self.watch.in_recorder:
            self.save("exited", status, "the script called os._exit")
        self._leave(status)

    def _stand(self) -> None:
        while not self.watch.over:
            time.sleep(0.25)
            self.look()
        stopped = time.monotonic()
        while time.monotonic() < stopped + GRACE or not self.watch.stopping:
            time.sleep(0.25)
        self._end()

    def look(self) -> None:
        watch = self.watch
        bound = watch.deadline + OVERTIME if watch.begun else watch.opened + self.patience
        if watch.clock() > bound and not watch.over:
            watch.stopping = True
            self.save("limit", None, "")
            raise_in(threading.main_thread())

    def _end(self) -> None:
        processes = sys.modules.get("multiprocessing")
        for worker in processes.active_children() if processes is not None else ():
            worker.kill()
        self._leave(0)


def raise_in(thread: threading.Thread) -> None:
    """Have another thread end as if its own code had raised, at its next bytecode."""
    identity, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(LimitReached)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, error)


class Recording:
    """One pass: the watch, the hooks and samplers that report to it, and the trace that is saved of them."""

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
