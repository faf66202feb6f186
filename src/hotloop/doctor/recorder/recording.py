"""One run of the script in this process, and the trace that is left of it however it ends."""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from statistics import median
from typing import Any

from .alarm import Alarm
from .closeup import Closeup
from .counting import CallCounter
from .episodes import Episodes
from .follow import Follower, OptimiserSteps
from .gradients import Forwards, Fused, NoGradients
from .guard import Guard, leave_stopped_script
from .hooks import ClassHooks, timed
from .keras_hooks import KerasHooks
from .learning import Compilations, Diagonals, Learning, Operators, Products
from .libraries import Arrivals, Libraries
from .memory import Memory
from .meters import Pauses, Queue, WorkerTime, process_facts
from .order import (
    CHANGES_LEARNING,
    COUNTING,
    EPISODES,
    EXPERIMENTS,
    FINGERPRINTS,
    KEEPING,
    OPERATORS,
    PACE,
    START_UP,
    THREADS,
    TIMING,
    Order,
    read_order,
)
from .originals import as_json, open_file, replace_file
from .pace import Pace
from .passes import Pass
from .places import SourcePlaces
from .program import Ending, prepare, run_program
from .remarks import NO_ENV, NO_ENV_YET, Remarks
from .repeats import Copies, Repeats
from .sampling import StackSampler
from .sources import Made, Mentions
from .storing import Storing
from .switches import Callers, Evaluation, Logging, Rendering, SwitchedClasses, SwitchedLibraries
from .toggling import Toggler
from .torch_hooks import TorchHooks
from .tracing import Tracer, Tracing
from .trial import Control, Experiments, Switch, Trial
from .unseeded import Unseeded
from .updates import FewerUpdates, OnePerEnvCall, Updates
from .watch import LimitReached, Watch
from .words import STORE
from .workshop import Workshop

BATCH = 256
"""Events seen before they are attributed, where no pass needs to know at once."""
SAVING = 30.0
"""Seconds that one waits for another thread to save."""
MOST_OF_SAVING = 400.0
"""So many times as long as was spent on notes of what was seen so far the loop must have run before the next."""


def passes_of(order: Order, places: SourcePlaces, torch_hooks: TorchHooks, alarm: Alarm) -> list[Pass]:
    """What a run of each kind carries, besides the hooks that every run has."""
    made: dict[str, Callable[[], list[Pass]]] = {
        TIMING: lambda: [
            *(StackSampler(places, order.interval, alarm=alarm), Pauses(), WorkerTime(), Queue()),
            *(Learning(torch_hooks), Workshop(torch_hooks), Remarks()),
            *(Memory(places), Mentions(places, order.script), Compilations()),
        ],
        COUNTING: lambda: [CallCounter(places, order), Repeats(places), Copies(places), Diagonals(), Products()],
        THREADS: lambda: [Toggler(order)],
        OPERATORS: lambda: [Operators()],
    }
    return made[order.kind]()


class SoFar(Pass):
    """Writes down what was seen about once a second, for the case that the process is ended from outside."""

    def __init__(self, save: Callable[[], None], begun: str) -> None:
        self._save, self._begun = save, begun
        self._due = self._cost = 0.0

    def begin(self) -> None:
        open_file(self._begun, "w").close()  # the parent's clock for this run starts

    def now_and_then(self, now: float) -> None:
        """The first time, and then as often as it takes no more than a part of the time."""
        if now >= self._due:
            self._save()
            self._cost += self.watch.clock() - now
            self._due = self.watch.began + MOST_OF_SAVING * self._cost


def own_cost(times: int = 500) -> tuple[float, float]:
    """Seconds that a hook of ours adds to the gap before an event, and to the event; by one on an empty function."""
    watch = Watch(1e9, None, batch=2 * times)
    watch.begin(watch.opened)
    watch.busy = False
    nothing = timed(watch, lambda: None, STORE)
    for _ in range(times):
        nothing()
    seen = watch.unsettled
    inside = median(end - start for _, start, end, *_ in seen)
    outside = median(after[1] - before[2] for before, after in zip(seen, seen[1:]))
    return outside, inside


def plain(value: Any) -> Any:
    """What a pass read from the script's objects and JSON does not know: a number of numpy's is one, else its text."""
    number = getattr(value, "item", None)
    return number() if callable(number) and getattr(value, "size", 1) == 1 else str(value)


class Recording:
    """One run: the watch, the passes that it asks, and the trace that is saved of them."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.alarm, self.classes = Alarm(), ClassHooks(order.env_classes)
        made = {EXPERIMENTS: self._trial, **dict.fromkeys((EPISODES, FINGERPRINTS, PACE), self._follower)}
        self.watch = made.get(order.kind, self._watch)()
        self.guard = Guard(self)
        self.stopping = False
        """Whether the doctor, not the script, has put an end to it."""
        self.saved = threading.Event()
        self._saving = threading.Lock()

    def _watch(self) -> Watch:
        order, places = self.order, SourcePlaces(self.order.script)
        made = Made(places)
        torch_hooks = TorchHooks(made)
        hooks: list[Pass] = [self.alarm, made, torch_hooks, KerasHooks(), self.classes, Libraries(self.classes)]
        return Watch(
            order.lead_seconds + order.seconds,
            None if order.kind == COUNTING else order.env_steps,
            passes=[
                *hooks,
                *passes_of(order, places, torch_hooks, self.alarm),
                SoFar(self.save_so_far, order.result + ".begun"),
            ],
            at_limit=self.stop_script,
            batch=BATCH if order.kind == TIMING else 1,
            steady=(order.warm_updates, order.after_env_steps),
            window=order.seconds if order.kind == TIMING else 0.0,
            late=order.late_seconds if order.kind == TIMING else 0.0,
            processor=getattr(time, "thread_time", None) if order.kind in (TIMING, THREADS) else None,
            own=own_cost() if order.kind == TIMING else (0.0, 0.0),
            alone_after=order.alone_after if order.kind == TIMING else 0.0,
        )

    def _follower(self) -> Watch:
        order = self.order
        if order.kind == PACE:
            return Follower(self.classes, Pace(order), at_limit=self.stop_script)
        if order.kind == EPISODES:
            return Follower(OptimiserSteps(), self.classes, Episodes(order.lines))
        places = SourcePlaces(order.script)
        close = (Closeup(), Unseeded(places)) if order.look_at else ()
        tracing = Tracing(order, places, close[0] if close else None)
        return Tracer(tracing, OptimiserSteps(), self.classes, *close, at_limit=self.stop_script)

    def _trial(self) -> Watch:
        """Switches of one kind, the hooks that they need, and a control."""
        order, places = self.order, SourcePlaces(self.order.script)
        log, render, store, evaluation = Logging(), Rendering(), Storing(), Evaluation(places)
        self.classes = SwitchedClasses(order.env_classes, log, render, store)
        updates, gradients = Updates(places, store, evaluation), NoGradients()
        switches: dict[str, list[Switch]] = {
            KEEPING: [Control(), log, render, gradients, Fused(updates), store, evaluation],
            CHANGES_LEARNING: [
                Control("control (learning)"),
                *(FewerUpdates(updates, every) for every in (0, 4, 16)),
                OnePerEnvCall(updates),
            ],
        }
        acting: list[Pass] = [Forwards(gradients)] if order.changes == KEEPING else []
        return Trial(
            switches.get(order.changes, []),
            [
                *(self.classes, SwitchedLibraries(self.classes, log, evaluation), updates, *acting),
                *(Callers(evaluation), Experiments(), SoFar(self.save_so_far, order.result + ".begun")),
            ],
            lead=order.lead_seconds,
            seconds=order.seconds,
            learns=order.learns,
            at_limit=self.stop_script,
            tell=self._tell,
        )

    def _tell(self, what: str) -> None:
        """For the parent, which says it to whoever waits."""
        with open_file(self.order.result + ".progress", "a") as file:
            file.write(what + "\n")

    def start(self) -> None:
        arrivals = Arrivals(self.watch.faults)
        self.watch.passes.ask("prepare")
        for one in self.watch.passes.passes:
            arrivals.want(one.arrivals())
            arrivals.want_anywhere(one.arrive_anywhere())
        arrivals.install()
        self.guard.start()

    def stop_script(self) -> None:
        """Enough was seen. A script that catches even this goes on unrecorded until the guard ends it."""
        if not self.save("limit", None, "", stopping=True):
            return
        if threading.current_thread() is threading.main_thread():
            raise LimitReached
        self.guard.raise_in_script()

    def save(self, ending: str, exit_code: int | None, error: str, stopping: bool = False) -> bool:
        """Whoever comes first saves, and True says so; who comes later waits until that is done."""
        if not self._saving.acquire(blocking=False):
            self.saved.wait(SAVING)
            return False
        self.stopping = stopping
        try:
            self.watch.finish()
            self._write(self.order.result, {"ending": ending, "exit_code": exit_code, "error": error}, self._add)
        finally:
            self.saved.set()
            if stopping:
                self.guard.stand()
        return True

    def save_so_far(self, ending: str = "", error: str = "") -> None:
        """What is known now, while the loop goes on: read only where `save` never came."""
        self.watch.slice()
        subject = {"ending": ending, "exit_code": None, "error": error}
        self._write(self.order.result + ".so-far", subject, self.watch.passes.ask_early)

    def release(self) -> None:
        """Let go of everything of the script's, so that Python can delete it at its end."""
        self.alarm.give_back()
        for one in self.watch.passes.passes:
            for held in vars(one).values():
                if isinstance(held, (dict, list, set, deque)):
                    held.clear()

    def _add(self, trace: dict[str, Any]) -> None:
        self.watch.passes.ask("add_to", trace)
        self.watch.faults.guarded("machine", lambda: trace["machine"].update(process_facts()))()

    def _write(self, path: str, subject: dict[str, Any], add: Callable[[dict[str, Any]], None]) -> None:
        """Whole or not at all; where it cannot be evaluated, that much."""
        try:
            trace = self._trace(subject)
            add(trace)
            text = as_json({**trace, "faults": self.watch.faults.noted}, default=plain)
        except Exception as fault:
            self.watch.faults.note("the recording could not be evaluated", fault)
            text = as_json({"subject": subject, "seconds": 0.0, "phases": {}, "faults": self.watch.faults.noted})
        with open_file(path + ".partial", "w") as file:
            file.write(text)
        replace_file(path + ".partial", path)

    def _trace(self, subject: dict[str, Any]) -> dict[str, Any]:
        """Fields of Trace as plain values: the watch's own, before each pass has added to them."""
        watch = self.watch
        told = watch.told()
        ended = watch.ended if watch.over else watch.attribution.mark
        start_up = (told.began if watch.begun else ended) - watch.opened + told.phases.pop(START_UP, 0.0)
        return {
            "subject": subject,
            "machine": {},
            "seconds": ended - watch.opened,
            "phases": {START_UP: start_up, **told.phases},
            "update_parts": told.parts,
            "processor": {phase: seconds for phase, seconds in told.processor.items() if phase != START_UP},
            "counts": {**told.totals, "envs": len(watch.envs)},
            "timeline": [part._asdict() for part in told.slices],
            "warm_up": [part._asdict() for part in told.before],
            "notes": [] if watch.begun else [NO_ENV_YET if subject["ending"] == "crashed" else NO_ENV],
        }


def record_here(order_path: str, before: Collection[str]) -> None:
    """The whole life of a child: run the script, save, end as the script ended."""
    with open_file(order_path) as file:
        order = read_order(file.read())
    recording = Recording(order)
    prepare(order.script, order.arguments, before, order.module)
    recording.start()
    end = Ending("limit")
    try:
        try:
            watched = functools.partial(recording.classes.env_step, sure=True)
            end = run_program(order.script, order.env_classes, watched, order.module)
        finally:
            recording.guard.script_has_ended()
    except LimitReached:  # it came when the script had just ended
        pass
    recording.save(end.how, end.code, end.error)
    if recording.stopping:
        leave_stopped_script()
    recording.release()
    end.leave()
