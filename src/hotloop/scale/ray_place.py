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

from hotloop.core.arithmetic import arithmetic, differences
from hotloop.core.errors import HotloopError, RunError, SettingsError
from hotloop.core.interrupts import terminate_as_interrupt
from hotloop.core.places import Began, Done, News, Task
from hotloop.runs import lock
from hotloop.runs.directory import LOCK, is_run
from hotloop.runs.files import make_folder, write_file
from hotloop.scale import node
from hotloop.scale.cluster import Cluster
from hotloop.scale.shipping import Inbox, Outbox
from hotloop.scale.specs import needs_trust, read_folder

Say = Callable[[str], None]
DEADLINE_SECONDS = 15.0
"""Without a sign of life, which comes every second, a run counts as lost."""
MOST_LOSSES = 6
"""In a row, without a checkpoint between them."""
_POLL_SECONDS = 0.1
_HANDSHAKE_SECONDS = 300.0


@dataclass
class _Node:
    name: str
    differs: list[str]
    faulty: str = ""
    """What went wrong there that was the machine's fault."""


@dataclass
class _Run:
    """One task on its way."""

    task: Task
    inbox: Inbox
    held: int
    """The lock of the run at home."""
    losses: int = 0
    packets: Any = None
    """Ray's generator."""
    heard: float | None = None
    """When it gave its last sign of life; None while it waits for a free core."""
    where: _Node | None = None
    objects: list[Any] = field(default_factory=list)
    bytes: int = 0


class RayPlace:
    elsewhere = True

    def __init__(self, found: Cluster, workers: int, *, trust: bool, mixed: bool, say: Say) -> None:
        self._ray, self._folder = found.ray, found.folder
        self._trust, self._mixed, self._say = trust, mixed, say
        self._nodes: dict[str, _Node] = {}
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
        self._shake_hands()
        self.workers = workers or self._cores()

    def _cores(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    # Who may take part

    def _shake_hands(self) -> None:
        """Every machine that is there says how it rounds; one that differs is refused by name, or told with `mixed`."""
        alive = {one["NodeID"]: one for one in self._ray.nodes() if one["Alive"]}
        new = [key for key in alive if key not in self._nodes]
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        ask = self._ray.remote(num_cpus=0, max_retries=2)(node.facts)
        asked = {key: ask.options(scheduling_strategy=strategy(key, soft=False)).remote() for key in new}
        for key, answer in asked.items():
            name = node.name_of(alive[key]["NodeManagerHostname"], key)
            try:
                facts = self._ray.get(answer, timeout=_HANDSHAKE_SECONDS)
            except Exception as error:  # a node that left, or has no hotloop
                facts = {"error": " ".join(str(error).split())[-200:]}
            differs = [str(facts["error"])] if "error" in facts else differences(arithmetic(), facts)
            self._nodes[key] = _Node(name, differs, faulty=str(facts.get("error", "")))
            if not differs:
                continue
            if not self._mixed and len(alive) == len(self._nodes) and not self._usable():
                raise RunError(
                    f"{name} cannot take part: {'; '.join(differs)}", "make the machines alike, or pass `--mixed`"
                )
            verb = "takes part all the same" if self._mixed and not facts.get("error") else "is left out"
            self._say(f"{name} {verb}: {'; '.join(differs)}")

    def _usable(self) -> list[str]:
        return [key for key, one in self._nodes.items() if not one.faulty and (self._mixed or not one.differs)]

    @property
    def differing(self) -> dict[str, list[str]]:
        """Machines that took part although they round in another way."""
        return {one.name: one.differs for one in self._nodes.values() if one.differs and not one.faulty}

    # The runs

    def run(self, tasks: Sequence[Task]) -> News:
        for task in tasks:
            if needs_trust(task.spec) and not self._trust:
                raise SettingsError(
                    f"{task.name} runs code of yours, which would be sent to the cluster", "pass `--trust` to send it"
                )
        waiting, running = deque(tasks), list[_Run]()
        with terminate_as_interrupt(), contextlib.ExitStack() as stack:
            stack.callback(self._end, running)
            while waiting or running:
                while waiting and len(running) < self.workers:
                    running.append(self._begin(waiting.popleft()))
                yield from self._news(running)
                yield None

    def _begin(self, task: Task) -> _Run:
        make_folder(task.path)
        held = lock.acquire(task.path / LOCK)  # nobody resumes it here meanwhile
        try:
            run = _Run(task, Inbox(task.path), held)
            self._submit(run)
        except BaseException:
            lock.release(held)
            raise
        return run

    def _submit(self, run: _Run) -> None:
        """To any machine that may take part, with what is at home of the run."""
        spec = run.task.spec
        for root in spec["roots"]:
            if root not in self._folders:
                self._folders[root] = self._ray.put(read_folder(Path(root)))
        folders = {root: self._ray.get(self._folders[root]) for root in spec["roots"]}
        run.objects = []
        if spec["kind"] == "run" and is_run(run.task.path):
            run.objects = [self._ray.put(packet) for packet in Outbox(run.task.path, newest_only=True).packets()]
        barred = [key for key in self._nodes if key not in self._usable()]
        options = {"label_selector": {"ray.io/node-id": f"!in({','.join(barred)})"}} if barred else {}
        here = str(self._folder) if self._folder else None
        run.heard = run.where = None
        run.packets = self._train.options(**options).remote(dict(spec), folders, run.objects, here)

    def _news(self, running: list[_Run]) -> Iterator[Began | Done]:
        ready, _ = self._ray.wait(
            [run.packets for run in running], num_returns=len(running), timeout=_POLL_SECONDS, fetch_local=False
        )
        for run in list(running):
            if run.packets in ready:
                yield from self._listen(run, running)
            elif run.heard is not None and time.monotonic() - run.heard > DEADLINE_SECONDS:
                yield from self._lost(run, running, f"no sign of life for {DEADLINE_SECONDS:.0f} s")

    def _listen(self, run: _Run, running: list[_Run]) -> Iterator[Began | Done]:
        try:
            packet = self._ray.get(next(run.packets), timeout=DEADLINE_SECONDS)
        except StopIteration:
            yield from self._lost(run, running, "it ended without a word")
        except self._ray.exceptions.RayTaskError as error:
            yield self._done(run, running, _last_line(error))
        except self._ray.exceptions.RayError as error:
            yield from self._lost(run, running, type(error).__name__)
        else:
            run.heard = time.monotonic()
            yield from self._take(run, packet, running)

    def _take(self, run: _Run, packet: Mapping[str, Any], running: list[_Run]) -> Iterator[Began | Done]:
        match packet:
            case {"kind": "beat"}:
                return
            case {"kind": "began", "node": str(key)}:
                if key not in self._nodes:
                    self._shake_hands()
                if key in self._usable():
                    run.where = self._nodes[key]
                    yield Began(run.task.index, run.where.name)
                else:  # it joined after we began
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

    def _faulty(self, run: _Run, running: list[_Run], error: str) -> Iterator[Done]:
        """The machine is to blame. It gets no further runs, unless there is no other."""
        reason = error.splitlines()[0]
        if run.where is not None and len(self._usable()) > 1 and "signal" not in reason:
            run.where.faulty = reason
            self._say(f"{run.where.name} gets no further runs: {reason}")
        yield from self._lost(run, running, reason)

    def _lost(self, run: _Run, running: list[_Run], reason: str) -> Iterator[Done]:
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

    def _cancel(self, run: _Run) -> None:
        """Whatever of it still runs somewhere is nobody's from now on."""
        if run.packets is not None:
            with contextlib.suppress(Exception):
                self._ray.cancel(run.packets, force=True)
            run.packets = None

    def _done(self, run: _Run, running: list[_Run], error: str) -> Done:
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

    def _end(self, running: list[_Run]) -> None:
        """In order: asked to stop first, and given a moment to end their children."""
        for run in running:
            with contextlib.suppress(Exception):
                self._ray.cancel(run.packets)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        left = [run.packets for run in running]
        while left and time.monotonic() < deadline:
            left = [one for one in left if not self._has_ended(one)]
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
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return True


_PATIENCE_SECONDS = 8.0


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
