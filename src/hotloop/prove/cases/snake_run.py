"""Our training loop on snake and the plain one at equal settings, each to be run in pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from hotloop.algos.dqn_settings import (
    CheckpointSettings,
    DQNSettings,
    EvaluationSettings,
    OptimiserSettings,
    TargetSettings,
)
from hotloop.core.schedules import Schedule
from hotloop.doctor.timer import PhaseTimer
from hotloop.envs.settings import EnvSettings
from hotloop.loop.off_policy import run_loop
from hotloop.loop.session import Session, build_session
from hotloop.loop.stopping import StopSignals
from hotloop.nets.settings import NetworkSettings
from hotloop.prove.cases.learners import copy_learner
from hotloop.prove.cases.loop import Nowhere
from hotloop.prove.cases.snake_play import observation_of, plain_from
from hotloop.prove.cases.tape import Tape
from hotloop.prove.cases.transitions import all_rows
from hotloop.prove.reference import snake_dqn
from hotloop.replay.settings import ReplaySettings

RUN_ENV_STEPS = 400_000
"""Of a whole run."""
WARM_UP = 4
"""Vector steps without updates: 1,024 transitions of 256 games."""
NEVER = 1 << 40


@dataclass(frozen=True)
class Scale:
    num_games: int
    capacity: int
    """Transitions that the replay holds."""
    checked_steps: int
    """Vector steps of the run that is compared, at most."""


def make_settings(mode: str, updates: int, scale: Scale, target_every: int = 125, **options: Any) -> DQNSettings:
    """`target_every` counts vector steps: 32,000 transitions of 256 games."""
    return DQNSettings(
        total_env_steps=RUN_ENV_STEPS,
        updates_per_env_step=f"{updates}/{scale.num_games}",
        warmup_env_steps=WARM_UP * scale.num_games,
        batch_size=64,
        timeouts_are_terminal=True,
        log_every=NEVER,  # the plain program logs nothing
        env=EnvSettings(id="snake", num_envs=scale.num_games, options={"observation": observation_of(mode), **options}),
        network=NetworkSettings(hidden=(128, 128)),
        replay=ReplaySettings(capacity=scale.capacity),
        exploration=Schedule(kind="decay", start=1.0, end=0.01, factor=0.995, unit="episodes"),
        optimiser=OptimiserSettings(lr=1e-3, max_gradient_norm=1.0),
        target=TargetSettings(every=target_every * scale.num_games, unit="env_steps"),
        evaluation=EvaluationSettings(every=NEVER),
        checkpoint=CheckpointSettings(every=NEVER),
    )


def make_config(settings: DQNSettings, updates: int) -> snake_dqn.Config:
    return snake_dqn.Config(
        num_games=settings.env.num_envs,
        updates_per_step=updates,
        learning_starts=settings.warmup_env_steps,
        buffer_size=settings.replay.capacity,
        batch_size=settings.batch_size,
        hidden=settings.network.hidden,
        lr=settings.optimiser.lr,
        gamma=settings.gamma,
        epsilon_start=settings.exploration.start,
        epsilon_end=settings.exploration.end,
        epsilon_decay=settings.exploration.factor,
        target_every=settings.target.every,
        max_grad_norm=settings.optimiser.max_gradient_norm,
    )


class Ours:
    """Our loop, run up to any point."""

    def __init__(self, settings: DQNSettings) -> None:
        self._timer, self._stop, self._nowhere = PhaseTimer(), StopSignals(), Nowhere()
        self.session = build_session(settings, self._timer)
        self._ending_at: dict[int, DQNSettings] = {}

    def run_to(self, env_steps: int) -> Session:
        session = self.session
        if env_steps not in self._ending_at:  # kept: making settings costs as much as a vector step
            self._ending_at[env_steps] = replace(session.settings, total_env_steps=env_steps)
        session.settings = self._ending_at[env_steps]
        run_loop(session, self._nowhere, self._timer, self._stop, self._nowhere)  # type: ignore[arg-type]
        return session


class OurStretch:
    """`num_steps` vector steps of a run in its midst, over and over: all that shapes their cost is put back."""

    def __init__(self, settings: DQNSettings, start: int, num_steps: int) -> None:
        self._ours = Ours(settings)
        self.session = self._ours.run_to(start)
        self._num_games = settings.env.num_envs
        self._end = self.session.counters.env_steps + num_steps * self._num_games
        self._counters, self._state = self.session.counters.copy(), self.session.state()
        if self.session.replay.size == self.session.replay.capacity:
            del self._state["replay"]  # it stays full, and copying it would count
        for name in ("counters", "policy", "metrics", "best"):
            del self._state[name]

    def advance(self, num_steps: int) -> None:
        session = self.session
        if session.counters.env_steps >= self._end:
            self._restore()
        self._ours.run_to(session.counters.env_steps + num_steps * self._num_games)

    def _restore(self) -> None:
        session, state = self.session, self._state
        session.counters.env_steps = self._counters.env_steps
        session.counters.episodes = self._counters.episodes
        session.learner.load_state(state["learner"])
        session.collector.envs.set_state(state["envs"])
        session.collector.load_state(state["collector"])
        if "replay" in state:
            session.replay.load_state(state["replay"])


def tape_of(session: Session, oldest: Callable[[], int] | None = None) -> Tape:
    """The draws that a session is about to make."""
    coins, samples = session.policy.state()["rng"], session.replay.state()["sampler"]["generator"]
    return Tape(int(coins[0]), int(samples[0]), oldest)


class PlainStretch:
    """The plain program from where our session stands, with the numbers that it will draw next on a tape."""

    def __init__(self, session: Session, mode: str, config: snake_dqn.Config) -> None:
        self._env = plain_from(mode, session.collector.envs.get_state())
        self._states = torch.from_numpy(self._env.get_observations())
        network, counters = snake_dqn.QNetwork(self._states.shape[1], 3, config.hidden), session.counters
        self.tape = tape_of(session, lambda: self.agent.env_steps % config.buffer_size)
        self.agent, self.buffer = snake_dqn.DQN(config, network, self.tape), snake_dqn.ReplayBuffer(config.buffer_size)
        copy_learner(session.learner.state(), counters.updates, self.agent)
        self.agent.env_steps, self.agent.updates = counters.env_steps, counters.updates
        self.agent.epsilon, self.agent.episodes = session.policy.epsilon, counters.episodes
        self._fill(session)

    def _fill(self, session: Session) -> None:
        batch = all_rows(session.replay)
        obs, next_obs = np.array(batch.obs[0]), np.array(batch.next_obs[0])  # type: ignore[index]
        columns = (batch.action[0].tolist(), batch.reward[0].tolist(), next_obs, (batch.discount[0] == 0).tolist())
        for row in zip(obs, *columns, strict=True):
            self.buffer.push(*row)

    def advance(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self._states, _ = snake_dqn.vector_step(self.agent, self._env, self.buffer, self._states)
