"""Our own training loop, run an interval at a time; and one that stores as the plain program does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from hotloop.core.arithmetic import arithmetic_on
from hotloop.core.settings import as_tree
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array, EnvStep
from hotloop.diagnosis.plain_replay import PlainReplay
from hotloop.doctor.loops import LoopInterval
from hotloop.doctor.roofline import count_products
from hotloop.doctor.trace import Counts
from hotloop.loop import off_policy, on_policy
from hotloop.loop.contract import NullProgress, ProgressRow
from hotloop.loop.journal import Journal
from hotloop.loop.machine import StopAfter, compile_phase, spared_collector
from hotloop.loop.session import build_session
from hotloop.presets.ppo_settings import PPOSettings
from hotloop.presets.registry import RunSettings
from hotloop.replay.buffer import ReplayMemory as Replay
from hotloop.runs.directory import Run

NOT_TIMED = "not timed"
"""The phase of what an experiment does beside the loop; no interval counts it."""
Push = Callable[..., None]
"""`push(buffer, obs, action, reward, next_obs, done)`: tensors of all envs into the plain program's buffer."""


class TrainingLoop:
    """The loop of `hotloop train` in a run directory of its own, continued by `advance` for as many env steps as asked.

    With `push`, an off-policy loop stores its rows by that function; see `PlainPushReplay`.
    """

    def __init__(self, settings: RunSettings, folder: Path, push: Push | None = None) -> None:
        self._settings, self._progress = settings, NullProgress()
        on_rollouts = isinstance(settings, PPOSettings)
        self._run_loop: Callable[..., Iterator[ProgressRow]] = (
            on_policy.run_loop if on_rollouts else off_policy.run_loop
        )
        self._timer = PhaseTimer()
        self._cleanup = ExitStack()
        self._cleanup.enter_context(spared_collector())  # once: an interval is short
        silent = self._progress.say
        with arithmetic_on(settings.torch_threads), compile_phase(self._timer, silent), self._timer.phase("start-up"):
            self.session: Any = build_session(settings, self._timer)
            self._cleanup.callback(self.session.close)
            if push is not None:
                plain: Any = PlainPushReplay(self.session.replay, push, self._timer.phase(NOT_TIMED))
                self.session = replace(self.session, replay=plain)
            run = self._cleanup.enter_context(Run.create(str(folder), "doctor", as_tree(settings)))
            self._journal = Journal(run, self.session, self._timer, warn=silent)
            self._cleanup.callback(self._journal.close)
            self._journal.begin()
        self.start_up_seconds = sum(self._timer.totals_ns().values()) / 1e9

    def advance(self, env_steps: int) -> LoopInterval:
        """Train for at least so many env steps, fewer only at the run's end; what that took, by phase."""
        counters = self.session.counters
        before, totals = counters.copy(), self._timer.totals_ns()
        stop = StopAfter(counters, counters.env_steps + env_steps)
        with arithmetic_on(self._settings.torch_threads), compile_phase(self._timer, self._progress.say):
            for _ in self._run_loop(self.session, self._journal, self._timer, stop, self._progress):
                pass
        phases = {name: (ns - totals.get(name, 0)) / 1e9 for name, ns in self._timer.totals_ns().items()}
        phases.pop(NOT_TIMED, None)
        self.start_up_seconds += phases.pop("compile", 0.0)  # what compiles on its first call is no part of the loop
        return LoopInterval(
            seconds=sum(phases.values()),
            env_steps=counters.env_steps - before.env_steps,
            episodes=counters.episodes - before.episodes,
            updates=counters.updates - before.updates,
            phases={name: seconds for name, seconds in phases.items() if seconds > 0},
        )

    def counts(self) -> Counts:
        """How far it came, and what it trains."""
        session = self.session
        parameters = list(session.learner.network.parameters())
        return Counts(
            env_steps=session.counters.env_steps,
            env_calls=session.counters.env_steps // self._settings.env.num_envs,
            episodes=session.counters.episodes,
            updates=session.counters.updates,
            parameter_tensors=len(parameters),
            parameters=sum(parameter.numel() for parameter in parameters),
            optimiser=f"Adam, {session.learner.lane.name} lane",
            batch_size=session.learner.rows_per_update,
        )

    def products_per_update(self, turns: int) -> float:
        """Floating-point operations of the matrix products in the first call of the learner's `update`, by update;
        0 where none comes within so many turns of all envs. Other lanes than the eager one multiply elsewhere."""
        learner, counters, found = self.session.learner, self.session.counters, []
        update = learner.update

        def counted(*args: Any, **keywords: Any) -> Any:
            before, results = counters.updates, []
            operations = count_products(lambda: results.append(update(*args, **keywords)))
            found.append(operations / max(1, counters.updates - before))
            return results[0]

        learner.update = counted
        for _ in range(turns):
            if found or self.session.finished:
                break
            self.advance(self._settings.env.num_envs)
        return found[0] if found else 0.0

    def close(self) -> None:
        self._cleanup.close()


class PlainPushReplay:
    """A replay whose timed store is the plain program's: `push` into a deque of tuples.

    Batches still come from our replay, so that the loop computes the same; it is filled in the phase `not_timed`: one
    store is timed, not two.
    """

    def __init__(self, replay: Replay, push: Push, not_timed: AbstractContextManager[None]) -> None:
        self.pushed = PlainReplay(replay.buffer_size)
        self._replay, self._push, self._not_timed = replay, push, not_timed
        self.sample, self.update_priorities = replay.sample, replay.update_priorities
        self.drop_pending, self.reseed = replay.drop_pending, replay.reseed
        self.state, self.load_state = replay.state, replay.load_state

    @property
    def size(self) -> int:
        return self._replay.size

    def add(self, obs: Array, action: Array, step: EnvStep) -> int:
        with self._not_timed:
            done = step.terminated | step.truncated
            tensors = [torch.from_numpy(array) for array in (obs, action, step.reward, step.final_obs, done)]
        self._push(self.pushed, *tensors)
        with self._not_timed:
            return self._replay.add(obs, action, step)
