"""A Ray cluster as a place: a task for each run, its directory streamed home, a lost one begun again elsewhere.

Ray schedules and transports; ours is what runs where, and what is done about a loss. The run at home is always one that
could be resumed: whatever is lost (worker, node, link, this process) costs what was trained since the last checkpoint.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotloop.core.errors import HotloopError, SettingsError
from hotloop.core.interrupts import raise_if_asked, terminate_as_interrupt
from hotloop.core.places import Began, Done, News, Task
from hotloop.runs import lock
from hotloop.runs.directory import LOCK, is_run
from hotloop.runs.files import make_folder, write_file
from hotloop.scale import node
from hotloop.scale.cluster import Cluster
from hotloop.scale.machines import Machine, Machines, last_line
from hotloop.scale.shipping import Inbox, Outbox
from hotloop.scale.specs import needs_trust, read_folder

Say = Callable[[str], None]
DEADLINE_SECONDS = 15.0
"""Without a sign of life, which comes every second, a run counts as lost."""
MOST_LOSSES = 6
"""In a row, without a checkpoint between them."""
_POLL_SECONDS = 0.1
_PATIENCE_SECONDS = 8.0


@dataclass
class _RayRun:
    """One task on its way."""

    task: Task
    inbox: Inbox
    held: int
    """The lock of the run at home."""
    losses: int = 0
    packets: Any = None
    """Ray's generator."""
    asked: float = 0.0
    """When it was handed to Ray."""
    heard: float | None = None
    """When it gave its last sign of life; None while it waits for a free core."""
    where: Machine | None = None
    objects: list[Any] = field(default_factory=list)
    bytes: int = 0


class RayPlace:
    elsewhere = True

    def __init__(self, found: Cluster, workers: int, *, trust: bool, mixed: bool, say: Say) -> None:
        self._ray, self._folder = found.ray, found.folder
        self._trust, self._say = trust, say
        self._machines = Machines(self._ray, mixed, say)
        self._folders: dict[str, Any] = {}
        self.bytes: dict[str, int] = {}
        """Sent home, by the name of the run."""
        options = {
            "num_cpus": 1,
            "max_retries": 0,
            "num_returns": "streaming",
            "_generator_backpressure_num_objects": 8,
        }
        self._train = self._ray.remote(**options)(node.train)
        self.workers = workers or self._machines.cores()

    @property
    def differing(self) -> dict[str, list[str]]:
        """Machines that took part although they round in another way."""
        return self._machines.differing

    def run(self, tasks: Sequence[Task]) -> News:
        for task in tasks:
            if needs_trust(task.spec) and not self._trust:
                raise SettingsError(
                    f"{task.name} runs code of yours, which would be sent to the cluster", "pass `--trust` to send it"
                )
        waiting, running = deque(tasks), list[_RayRun]()
        with terminate_as_interrupt(), contextlib.ExitStack() as stack:
            stack.callback(self._end, running)
            while waiting or running:
                while waiting and len(running) < self.workers:
                    running.append(self._begin(waiting.popleft()))
                yield from self._news(running)
                raise_if_asked()
                yield None

    def _begin(self, task: Task) -> _RayRun:
        make_folder(task.path)
        held = lock.acquire(task.path / LOCK)  # nobody resumes it here meanwhile
        try:
            run = _RayRun(task, Inbox(task.path), held)
            self._submit(run)
        except BaseException:
            lock.release(held)
            raise
        return run

    def _submit(self, run: _RayRun) -> None:
        """To any machine that may take part, with what is at home of the run."""
        spec = run.task.spec
        for root in spec["roots"]:
            if root not in self._folders:
                self._folders[root] = self._ray.put(read_folder(Path(root)))
        folders = {root: self._ray.get(self._folders[root]) for root in spec["roots"]}
        run.objects = []
        if spec["kind"] == "run" and is_run(run.task.path):
            run.objects = [self._ray.put(packet) for packet in Outbox(run.task.path, newest_only=True).packets()]
        barred = self._machines.barred()
        options = {"label_selector": {"ray.io/node-id": f"!in({','.join(barred)})"}} if barred else {}
        here = str(self._folder) if self._folder else None
        run.asked, run.heard, run.where = time.monotonic(), None, None
        run.packets = self._train.options(**options).remote(dict(spec), folders, run.objects, here)

    def _news(self, running: list[_RayRun]) -> Iterator[Began | Done]:
        ready, _ = self._ray.wait(
            [run.packets for run in running], num_returns=len(running), timeout=_POLL_SECONDS, fetch_local=False
        )
        for run in list(running):
            if run.packets in ready:
                yield from self._listen(run, running)
            elif run.heard is not None and time.monotonic() - run.heard > DEADLINE_SECONDS:
                yield from self._lost(run, running, f"no sign of life for {DEADLINE_SECONDS:.0f} s")
            elif run.heard is None and time.monotonic() - run.asked > DEADLINE_SECONDS:
                self._look_after(run)

    def _look_after(self, run: _RayRun) -> None:
        """It waits for a core, maybe one that will never be free: all machines that it may use can be gone."""
        run.asked = time.monotonic()
        if not self._machines.usable():
            self._say(f"{run.task.name} waits: no machine of the cluster is left that may take part")
            self._cancel(run)
            self._submit(run)

    def _listen(self, run: _RayRun, running: list[_RayRun]) -> Iterator[Began | Done]:
        try:
            packet = self._ray.get(next(run.packets), timeout=DEADLINE_SECONDS)
        except StopIteration:
            run.packets = None
            yield from self._lost(run, running, "it ended without a word")
        except self._ray.exceptions.RayTaskError as error:
            yield self._done(run, running, last_line(error))
        except self._ray.exceptions.RayError as error:
            yield from self._lost(run, running, type(error).__name__)
        else:
            run.heard = time.monotonic()
            yield from self._take(run, packet, running)

    def _take(self, run: _RayRun, packet: Mapping[str, Any], running: list[_RayRun]) -> Iterator[Began | Done]:
        match packet:
            case {"kind": "beat"}:
                return
            case {"kind": "began", "node": str(key)}:
                run.where = self._machines.find(key)
                if run.where is not None:
                    yield Began(run.task.index, run.where.name)
                else:  # it joined after we began, and may not take part
                    self._cancel(run)
                    self._submit(run)
            case {"kind": "ended", "error": str(error), "fault": fault}:
                run.bytes += packet.get("bytes", 0)
                if fault and error:
                    yield from self._faulty(run, running, error)
                else:
                    if error and packet.get("log"):
                        write_file(run.task.log, packet["log"])
                        error = error.replace("its log", str(run.task.log))
                    yield self._done(run, running, error)
            case _:
                before = run.inbox.checkpoints
                run.inbox.take(packet)
                if run.inbox.checkpoints > before:
                    run.losses = 0

    def _faulty(self, run: _RayRun, running: list[_RayRun], error: str) -> Iterator[Done]:
        """The machine is to blame. It gets no further runs, unless there is no other."""
        reason = error.splitlines()[0]
        if run.where is not None and len(self._machines.usable()) > 1 and "signal" not in reason:
            run.where.faulty = True
            self._say(f"{run.where.name} gets no further runs: {reason}")
        yield from self._lost(run, running, reason)

    def _lost(self, run: _RayRun, running: list[_RayRun], reason: str) -> Iterator[Done]:
        """Begun again where there is room, from what is at home."""
        self._cancel(run)
        run.losses += 1
        where = f" on {run.where.name}" if run.where else ""
        if run.losses > MOST_LOSSES:
            yield self._done(run, running, f"lost {run.losses} times in a row, the last time{where}: {reason}")
            return
        self._say(f"{run.task.name} was lost{where} ({reason}) and goes on from its last checkpoint")
        run.inbox.close()
        self._submit(run)

    def _cancel(self, run: _RayRun) -> None:
        """Whatever of it still runs somewhere is nobody's from now on.

        Not where it has just ended: Ray looks at its task twice then, and aborts this process if that was cancelled
        between ("Tried to complete task that was not pending").
        """
        if run.packets is not None:
            with contextlib.suppress(Exception):
                self._ray.cancel(run.packets, force=True)
            run.packets = None

    def _done(self, run: _RayRun, running: list[_RayRun], error: str) -> Done:
        running.remove(run)
        run.objects = []
        try:
            run.inbox.finish()
        except HotloopError as problem:
            error = error or str(problem)
        finally:
            lock.release(run.held)
        self.bytes[run.task.name] = run.bytes
        return Done(run.task.index, error)

    def _end(self, running: list[_RayRun]) -> None:
        """In order: asked to stop first, and given a moment to end their children."""
        for run in running:
            with contextlib.suppress(Exception):
                self._ray.cancel(run.packets)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        ended = []  # not let go of until all is over
        while any(run.packets is not None for run in running) and time.monotonic() < deadline:
            for run in running:
                if run.packets is not None and self._has_ended(run.packets):
                    ended.append(run.packets)
                    run.packets = None
        for run in running:
            self._cancel(run)
            with contextlib.suppress(HotloopError):
                run.inbox.close()
            lock.release(run.held)

    def _has_ended(self, packets: Any) -> bool:
        try:
            ready, _ = self._ray.wait([packets], timeout=_POLL_SECONDS, fetch_local=False)
            if ready:
                self._ray.get(next(packets), timeout=1.0)
            return False
        except self._ray.exceptions.GetTimeoutError:
            return False
        except Exception:  # StopIteration, or what ended it
            return True
