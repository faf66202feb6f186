"""One run of the script in this process, and the trace that is left of it however it ends."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from .arrivals import Arrivals
from .compilations import Compilations
from .counting import CallCounter
from .diagonals import Diagonals
from .hooks import ClassHooks
from .libraries import Libraries
from .machine import process_facts
from .memory import Memory
from .meters import Learning, Operators, Pauses, WorkerTime
from .order import COUNTING, OPERATORS, THREADS, TIMING, Order, read_order
from .passes import Pass
from .phases import RECORDING, START_UP
from .places import Places
from .program import prepare, run_program
from .repeats import Repeats
from .sampling import Sampler
from .sources import Mentions
from .toggling import Toggler
from .torch_hooks import TorchHooks
from .watch import LimitReached, Watch

GRACE = 6.0
"""Seconds that a stopped script has to clean up."""
OVERTIME = 10.0
"""Seconds beyond its bound that a loop may go without an env call, at which it would be stopped tidily."""
BATCH = 256
"""Events seen before they are attributed, where no pass needs to know at once."""


def passes_of(order: Order, torch_hooks: TorchHooks) -> list[Pass]:
    """What a run of each kind carries, besides the hooks that every run has."""
    places = Places(order.script)
    made: dict[str, Callable[[], list[Pass]]] = {
        TIMING: lambda: (
            [Sampler(places, order.interval), Pauses(), WorkerTime(), Learning(torch_hooks), Remarks()]
            + [Memory(places), Mentions(places, order.script), Compilations()]
        ),
        COUNTING: lambda: [CallCounter(places, order), Repeats(places), Diagonals()],
        THREADS: lambda: [Toggler(order)],
        OPERATORS: lambda: [Operators()],
    }
    return made[order.kind]()


class Remarks(Pass):
    """What the reader should know of what was found and what could not be seen."""

    def add_to(self, trace: dict[str, Any]) -> None:
        notes, watch = trace["notes"], self.watch
        if not watch.begun:
            return
        notes.insert(0, f"envs found: {', '.join(sorted(set(watch.envs.values())))}")
        if "torch" not in sys.modules:
            used = next((name for name in ("jax", "tensorflow", "keras") if name in sys.modules), "no PyTorch")
            notes.append(
                f"{used}: acting and learning cannot be told apart; only env, replay and logging are split off"
            )
        elif not watch.attribution.counts["updates"]:
            notes.append("no optimiser step was seen in the recorded time")


class Guard:
    """Ends a script that will not end itself when the doctor has seen enough; loses nothing where it leaves early."""

    def __init__(self, recording: Recording) -> None:
        self.recording, self.watch = recording, recording.watch
        self._leave = os._exit

    def start(self) -> None:
        os._exit = self._leave_after_saving
        threading.Thread(target=self._stand, daemon=True).start()

    def _leave_after_saving(self, status: int) -> Any:
        if self.watch.in_recorder:
            self.recording.save("exited", status, "the script called os._exit")
        self._leave(status)

    def _stand(self) -> None:
        while not self.watch.over:
            time.sleep(0.25)
            self.look()
        self.recording.saved.wait()
        stopped = time.monotonic()
        while time.monotonic() < stopped + GRACE or not self.recording.stopping:
            time.sleep(0.25)
        self._end()

    def look(self) -> None:
        watch = self.watch
        bound = watch.deadline + OVERTIME if watch.begun else watch.opened + self.recording.order.patience
        if watch.clock() > bound and not watch.over:
            self.recording.stopping = True
            self.recording.save("limit", None, "")
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
    """One run: the watch, the passes that it asks, and the trace that is saved of them."""

    def __init__(self, order: Order) -> None:
        self.order = order
        torch_hooks, self.classes = TorchHooks(), ClassHooks(order.env_classes)
        passes = [torch_hooks, self.classes, Libraries(self.classes), *passes_of(order, torch_hooks)]
        self.watch = Watch(
            order.lead_seconds + order.seconds,
            None if order.kind == COUNTING else order.env_steps,
            passes=passes,
            at_limit=self.stop_script,
            batch=BATCH if order.kind == TIMING else 1,
        )
        self.stopping = False
        """Whether the doctor, not the script, has put an end to it."""
        self.saved = threading.Event()
        self._saving = threading.Lock()

    def start(self) -> None:
        arrivals = Arrivals(self.watch.faults)
        self.watch.passes.ask("prepare")
        for one in self.watch.passes.passes:
            arrivals.want(one.arrivals())
            arrivals.want_anywhere(one.arrive_anywhere())
        arrivals.install()
        Guard(self).start()

    def stop_script(self) -> None:
        """Enough was seen. A script that catches even this goes on unrecorded until the guard ends it."""
        self.stopping = True
        self.save("limit", None, "")
        raise LimitReached

    def save(self, ending: str, exit_code: int | None, error: str) -> None:
        """Once; whoever comes first. Who comes later waits until it is done."""
        if not self._saving.acquire(blocking=False):
            self.saved.wait()
            return
        subject = {"ending": ending, "exit_code": exit_code, "error": error}
        try:
            self.watch.finish()
            trace = self._trace(subject)
        except Exception as fault:
            self.watch.faults.note("the recording could not be evaluated", fault)
            trace = {"subject": subject, "seconds": 0.0, "phases": {}, "faults": self.watch.faults.noted}
        try:
            write_whole(json.dumps(trace), self.order.result)
        finally:
            self.saved.set()

    def _trace(self, subject: dict[str, Any]) -> dict[str, Any]:
        """Fields of Trace as plain values: the watch's own, then what each pass adds."""
        watch = self.watch
        phases = {**watch.attribution.phases, RECORDING: watch.attribution.recording} if watch.begun else {}
        start_up = (watch.began if watch.begun else watch.ended) - watch.opened + phases.pop(START_UP, 0.0)
        trace: dict[str, Any] = {
            "subject": subject,
            "machine": {},
            "seconds": watch.ended - watch.opened,
            "phases": {START_UP: start_up, **phases},
            "update_parts": watch.attribution.parts,
            "counts": {**watch.totals(), "envs": len(watch.envs)},
            "timeline": [part._asdict() for part in watch.timeline.slices],
            "notes": [] if watch.begun else [NO_ENV],
        }
        watch.passes.ask("add_to", trace)
        watch.faults.guarded("machine", lambda: trace["machine"].update(process_facts()))()
        return {**trace, "faults": watch.faults.noted}


NO_ENV = (
    "no env step was seen: nothing with `step` and `reset` was called"
    " (an env stepped in another process or compiled by JAX cannot be seen); name yours with --env"
)


def write_whole(text: str, path: str) -> None:
    """Under its name when it is whole."""
    with open(path + ".partial", "w") as file:
        file.write(text)
    os.replace(path + ".partial", path)


def record_here(order_path: str, before: Collection[str]) -> None:
    """The whole life of a child: run the script, save, leave with the script's own exit code."""
    with open(order_path) as file:
        order = read_order(file.read())
    recording = Recording(order)
    prepare(order.script, order.arguments, before)
    names = [name.rpartition(":")[2] for name in order.env_classes]
    recording.start()
    ending, code, error = run_program(
        order.script, names, lambda function: recording.classes.env_step(function, sure=True)
    )
    recording.save(ending, code, error)
    raise SystemExit(code or 0)
