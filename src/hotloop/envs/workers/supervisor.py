"""The workers of a pool, supervised: given orders together, and replaced where one of them is lost.

A worker that was lost, in words.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from hotloop.core.errors import EnvError, HotloopError
from hotloop.core.interrupts import is_overdue
from hotloop.core.rng import derive_seed
from hotloop.core.terminal import say
from hotloop.core.types import Array
from hotloop.envs.workers import messages, serve
from hotloop.envs.workers.messages import BufferPlan, new_memory
from hotloop.envs.workers.process import WorkerLost, WorkerLostError, WorkerProcess, WorkerTimeouts, wait_for
from hotloop.presets.env_settings import EnvSettings

HINT = "mend what the stack shows; `env.worker_restarts` allows more, `env.worker_timeout_seconds` longer steps"
MEMORY_HINT = "signal 9 without a sender often means that memory ran out: try fewer `env.workers` or `env.num_envs`"


@dataclass(frozen=True)
class Incident:
    """Its envs `first` .. `last`, the steps of each until then, what became of it, and its Python stack if known."""

    env_id: str
    first: int
    last: int
    steps: int
    reason: str
    stack: str

    def __str__(self) -> str:
        who = f"env {self.first}" if self.first == self.last else f"envs {self.first}-{self.last}"
        when = f"after {self.steps} steps of each env" if self.steps else "before the first step"
        return f"`{self.env_id}`: the worker process of {who} {self.reason}, {when}"

    @property
    def indented_stack(self) -> str:
        lines = self.stack.strip().splitlines()
        return "".join(f"\n    {line}" for line in lines)

    def as_error(self, addition: str) -> EnvError:
        hint = MEMORY_HINT if "SIGKILL" in self.reason else HINT
        return EnvError(f"{self}; {addition}{self.indented_stack}", hint)


def incident_of(env_id: str, rows: slice, steps: int, loss: WorkerLost) -> Incident:
    return Incident(env_id, rows.start, rows.stop - 1, steps, loss.reason, loss.stack)


START_SECONDS = 60.0
"""Allowed for importing and making the envs, on top of `worker_timeout_seconds`."""
LEAVE_SECONDS = 2.0
"""Workers have so long to close their envs before they are killed."""
END_SECONDS = 1.0
"""A killed process is waited for so long."""


class Group:
    """Neighboring envs of one worker, which may be one process after the other."""

    def __init__(self, rows: slice, seeds: Array) -> None:
        self.rows = rows
        self.restarts = 0
        self.has_endings = False  # whether its last answer said that episodes ended
        self.process: WorkerProcess | None = None
        self._seeds = [int(seed) for seed in seeds[rows]]

    def next_seeds(self) -> list[int]:
        """The pool's own at first, then others: a crash that follows from the seeds would come again."""
        if not self.restarts:
            return self._seeds
        return [derive_seed(seed, "restart", self.restarts) for seed in self._seeds]

    def running(self) -> WorkerProcess:
        assert self.process is not None
        return self.process


Lost = list[tuple[Group, WorkerLost]]


class Supervisor:
    def __init__(self, settings: EnvSettings, num_envs: int, seeds: Array) -> None:
        count = min(settings.workers, num_envs)
        bounds = [num_envs * number // count for number in range(count + 1)]
        self.groups = [Group(slice(*pair), seeds) for pair in zip(bounds[:-1], bounds[1:], strict=True)]
        self.steps = 0
        self.incidents: list[Incident] = []
        self.memory = -1
        self._num_envs = num_envs
        self._settings = settings
        self._folder = os.getcwd()
        self._owner = os.getpid()
        self._settled = True  # False while answers are owed, so for good where waiting for them was interrupted

    def open(self) -> BufferPlan:
        """Start all workers and lay out the memory they write to."""
        for group in self.groups:
            self._start(group)
        patience = self._patience(START_SECONDS)
        plans = [self._first_plan(group, patience) for group in self.groups]
        self.plan = replace(plans[0], has_action_mask=all(plan.has_action_mask for plan in plans))
        for plan in plans:
            self._require_same(plan)
        self.memory = new_memory(self.plan)
        for group in self.groups:
            group.running().attach(self.memory, self.plan)
        return self.plan

    def ask(self, order: bytes) -> Lost:
        """Have all workers do `order`; those that were lost over it."""
        self.require_open()
        if not self._settled:
            raise EnvError("these envs were left in the middle of a step", "make new ones")
        processes = [group.running() for group in self.groups]
        self._settled = False
        for process in processes:
            process.give(order)
        patience = self._patience()
        errors: list[HotloopError] = []
        lost: Lost = []
        for group, process in zip(self.groups, processes, strict=True):
            try:
                group.has_endings = process.answer(patience) == messages.DONE_WITH_ENDINGS
            except WorkerLostError as error:
                lost.append((group, error.loss))
            except HotloopError as error:
                errors.append(error)
        self._settled = True
        if errors:
            raise errors[0]
        return lost

    def require_open(self) -> None:
        if self.memory < 0:
            raise EnvError("these envs are closed", "make new ones")

    def replace(self, lost: Lost, reset: bytes) -> None:
        """Start those workers again, with new envs that have done `reset`."""
        self._settled = not lost
        while lost:
            for group, loss in lost:
                self._report(group, loss)
                self._start(group)
            lost = self._settle([group for group, _ in lost], reset)
        self._settled = True

    def close(self) -> None:
        """Let the workers close their envs; kill those that do not."""
        if os.getpid() != self._owner:
            return  # a forked child's copy: the workers are its parent's
        processes = [group.process for group in self.groups if group.process is not None]
        for process in processes:
            process.give(messages.LEAVE)
        wait_for(lambda: all(process.has_ended() for process in processes), LEAVE_SECONDS)
        for process in processes:
            process.strike()
        end = time.monotonic() + END_SECONDS
        for process in processes:
            process.kill(max(0.0, end - time.monotonic()))
        for group in self.groups:
            group.process = None
        memory, self.memory = self.memory, -1
        if memory >= 0:
            os.close(memory)

    def _settle(self, groups: list[Group], reset: bytes) -> Lost:
        patience = self._patience(START_SECONDS)
        lost: Lost = []
        for group in groups:
            process = group.running()
            try:
                self._require_same(self._ask_plan(process, patience))
                process.attach(self.memory, self.plan)
                process.give(reset)
                process.answer(patience)
                group.has_endings = False
            except WorkerLostError as error:
                lost.append((group, error.loss))
        return lost

    def _start(self, group: Group) -> None:
        settings = asdict(self._settings) | {"workers": 0}
        request: dict[str, Any] = {
            "settings": settings,
            "source": serve.first_digest(self._settings.id),
            "num_envs": self._num_envs,
            "first": group.rows.start,
            "seeds": group.next_seeds(),
            "steps": self.steps,
        }
        group.process = WorkerProcess(request, self._folder)

    def _first_plan(self, group: Group, patience: WorkerTimeouts) -> BufferPlan:
        try:
            return self._ask_plan(group.running(), patience)
        except WorkerLostError as error:
            incident = incident_of(self._settings.id, group.rows, 0, error.loss)
            raise incident.as_error("the envs could not be made") from error

    def _ask_plan(self, process: WorkerProcess, patience: WorkerTimeouts) -> BufferPlan:
        data = process.message(patience)
        if "error" in data:
            raise messages.error_from_data(data)
        return messages.plan_from_data(data)

    def _require_same(self, plan: BufferPlan) -> None:
        same = plan.obs_spec == self.plan.obs_spec and plan.action_spec == self.plan.action_spec
        if not same or plan.has_action_mask < self.plan.has_action_mask:
            raise EnvError(
                f"`{self._settings.id}` has other spaces or masks in one worker than in another",
                "make them follow from `options` alone",
            )

    def _report(self, group: Group, loss: WorkerLost) -> None:
        incident = incident_of(self._settings.id, group.rows, self.steps, loss)
        self.incidents.append(incident)
        if is_overdue():
            raise incident.as_error("the run stops without it")
        allowed = self._settings.worker_restarts
        if len(self.incidents) > allowed:
            raise incident.as_error(f"all {allowed} restarts of `env.worker_restarts` are used up")
        group.restarts += 1
        done = f"started again, its episodes truncated (restart {len(self.incidents)} of {allowed})"
        say(f"{incident}; {done}{incident.indented_stack}")

    def _patience(self, extra: float = 0.0) -> WorkerTimeouts:
        return WorkerTimeouts(self._settings.worker_timeout_seconds + extra)
