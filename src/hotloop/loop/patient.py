"""Our own training loop as the doctor takes it: run a stretch at a time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hotloop.algos.ppo_settings import PPOSettings
from hotloop.algos.registry import RunSettings
from hotloop.core.settings import as_tree
from hotloop.doctor.loops import Stretch
from hotloop.doctor.timer import PhaseTimer
from hotloop.doctor.trace import Counts
from hotloop.loop import off_policy, on_policy
from hotloop.loop.compile_phase import compile_phase
from hotloop.loop.contract import TrainingSession
from hotloop.loop.journal import Journal
from hotloop.loop.machine import machine_for
from hotloop.loop.on_policy_session import build_on_policy_session
from hotloop.loop.session import build_session
from hotloop.runs.directory import Run

NOT_TIMED = "not timed"
"""The phase of what an experiment does beside the loop; no stretch counts it."""


class TrainingLoop:
    """The loop of `hotloop train` in a run directory of its own, going on for as long as it is asked to."""

    def __init__(self, settings: RunSettings, folder: Path) -> None:
        self._settings = settings
        on_rollouts = isinstance(settings, PPOSettings)
        build: Any = build_on_policy_session if on_rollouts else build_session
        self._run_loop: Callable[..., None] = on_policy.run_loop if on_rollouts else off_policy.run_loop
        self._timer = PhaseTimer()
        self._cleanup = ExitStack()
        with machine_for(settings.threads), compile_phase(self._timer, _say_nothing), self._timer.phase("start-up"):
            self.session: Any = build(settings, self._timer)
            self._cleanup.callback(self.session.close)
            run = self._cleanup.enter_context(Run.create(str(folder), "doctor", as_tree(settings)))
            self._journal = Journal(run, self.session, self._timer, warn=_say_nothing)
            self._cleanup.callback(self._journal.close)
            self._journal.begin()
        self.not_timed = self._timer.phase(NOT_TIMED)
        self.start_up_seconds = sum(self._timer.totals_ns().values()) / 1e9

    def advance(self, env_steps: int) -> Stretch:
        counters = self.session.counters
        before, totals = counters.copy(), self._timer.totals_ns()
        stop = _StopAt(self.session, counters.env_steps + env_steps)
        with machine_for(self._settings.threads), compile_phase(self._timer, _say_nothing):
            self._run_loop(self.session, self._journal, self._timer, stop, _Silent())
        phases = {name: (ns - totals.get(name, 0)) / 1e9 for name, ns in self._timer.totals_ns().items()}
        phases.pop(NOT_TIMED, None)
        self.start_up_seconds += phases.pop("compile", 0.0)  # what compiles on its first call is no part of the loop
        return Stretch(
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

    def close(self) -> None:
        self._cleanup.close()


class _StopAt:
    """Ends a stretch where a signal would end a run."""

    def __init__(self, session: TrainingSession, env_steps: int) -> None:
        self._counters = session.counters
        self._env_steps = env_steps

    @property
    def requested(self) -> bool:
        return self._counters.env_steps >= self._env_steps

    def check(self) -> None:
        """Evaluations are finished."""


class _Silent:
    def show(self, *_: Any) -> None:
        """Not shown."""

    def say(self, text: str) -> None:
        """Not said."""


def _say_nothing(text: str) -> None:
    """What the run would say is not of interest here."""
