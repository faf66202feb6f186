"""The whole training loop on CartPole against a plain single-file DQN, at equal settings and equal update counts.

Compared step by step: the plain program gets our initial weights, our env seeds and a tape of our exploration and
sampling draws; then both must have stored the same transitions and end with the same parameters. Timed: the same runs
again, networks and envs made anew each time.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np

import hotloop
from benchmarks.learners import copy_parameters, flat, lane_problem
from benchmarks.sfc_step import Tape
from benchmarks.witnesses import dqn_cartpole
from hotloop.core.rng import derive_seed, derive_seeds
from hotloop.core.schedules import Schedule
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array
from hotloop.envs.cartpole import CartPole
from hotloop.envs.gymnasium_envs import gymnasium_seeds
from hotloop.lanes.spec import LANES
from hotloop.loop.contract import NullProgress
from hotloop.loop.journal import NullJournal
from hotloop.loop.machine import StopSignals
from hotloop.loop.off_policy import run_loop
from hotloop.loop.session import Session, build_session
from hotloop.presets.dqn_settings import (
    CheckpointSettings,
    DQNSettings,
    EvaluationSettings,
    LearnerSettings,
    OptimizerSettings,
    TargetSettings,
)
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.network_settings import NetworkSettings
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare

ENVS = {"gymnasium": "CartPole-v1", "native-env": "cartpole"}
TOLERANCE = 1e-3
"""Of the parameters after 500 updates whose batches come from their own actions; transitions must agree throughout."""
TIMED_ENV_STEPS = 600
WARM_UP = 100
"""Env steps."""


@hotloop.cases("the whole training loop")
def loop_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            family="loop-cartpole",
            variant=variant,
            lane=lane,
            unavailable=lane_problem(lane),
            size="64x64-b32",
            build=partial(_build, variant, lane),
            tolerance=TOLERANCE,
            quick=lane == "native" or variant == "gymnasium",
        )
        for variant in ENVS
        for lane in LANES
    ]


def _settings(variant: str, lane: str, env_steps: int) -> DQNSettings:
    return DQNSettings(
        total_env_steps=env_steps,
        learning_starts=WARM_UP,
        batch_size=32,
        env=EnvSettings(id=ENVS[variant]),
        network=NetworkSettings(hidden=(64, 64)),
        replay=ReplaySettings(buffer_size=10_000),
        exploration=Schedule(kind="linear", start=1.0, end=0.05, over=300),
        optimizer=OptimizerSettings(learning_rate=1e-3),
        target=TargetSettings(every=100),
        learner=LearnerSettings(lane=lane),  # type: ignore[arg-type]
        evaluation=EvaluationSettings(every=2 * env_steps),
        checkpoint=CheckpointSettings(every=2 * env_steps),
    )


def _config(settings: DQNSettings, seed: int = 0) -> dqn_cartpole.Config:
    return dqn_cartpole.Config(
        total_steps=settings.total_env_steps,
        learning_starts=settings.learning_starts,
        buffer_size=settings.replay.buffer_size,
        batch_size=settings.batch_size,
        hidden=settings.network.hidden,
        lr=settings.optimizer.learning_rate,
        gamma=settings.gamma,
        epsilon_start=settings.exploration.start,
        epsilon_end=settings.exploration.end,
        epsilon_steps=int(settings.exploration.over),
        target_every=settings.target.every,
        max_grad_norm=settings.optimizer.max_grad_norm,
        seed=seed,
    )


def _train(settings: DQNSettings) -> Session:
    """The loop of `hotloop train` without its run directory."""
    timer = PhaseTimer()
    session = build_session(settings, timer)
    for _ in run_loop(session, NullJournal(), timer, StopSignals(), NullProgress()):  # type: ignore[arg-type]
        pass
    session.close()
    return session


def _build(variant: str, lane: str) -> Programs:
    settings, brief = _settings(variant, lane, TIMED_ENV_STEPS), _settings(variant, lane, WARM_UP + 50)

    def growth() -> TwoSizes:
        """Per update, when the run is four times as long."""
        longer = _settings(variant, lane, WARM_UP + 4 * (TIMED_ENV_STEPS - WARM_UP))
        lengths = [f"{run.total_env_steps:,}" for run in (settings, longer)]
        return TwoSizes(lambda: _train(settings), lambda: _train(longer), 4.0, f"{lengths[0]} env steps", lengths[1])

    return Programs(
        plain=_PlainRuns(variant, settings),
        fast=lambda: _train(settings),
        compare=lambda session, plain: _compare(session, *plain[:2]),
        growth=growth if lane == "native" else None,  # minutes on the others
        brief=(lambda: dqn_cartpole.train(_config(brief)), lambda: _train(brief)),
    )


class _PlainRuns:
    """Whole runs of the plain program: the first from our weights, env seeds and draws, all others from its own."""

    def __init__(self, variant: str, settings: DQNSettings) -> None:
        start = build_session(settings, PhaseTimer())
        network = dqn_cartpole.QNetwork(4, 2, settings.network.hidden)
        copy_parameters(start.learner.lane.parameters(), network)
        start.close()
        env, seed = _plain_env(variant, settings)
        tape = Tape(derive_seed(settings.seed, "policy"), derive_seed(settings.seed, "replay"))
        self._config, self._start = _config(settings, seed), (env, network, tape)

    def __call__(self) -> tuple[Any, ...]:
        start, self._start = self._start, ()  # type: ignore[assignment]
        return dqn_cartpole.train(self._config, *start)


def _compare(session: Session, agent: dqn_cartpole.DQN, buffer: dqn_cartpole.ReplayBuffer) -> Equality:
    if (session.counters.updates, session.replay.size) != (agent.updates, len(buffer.buffer)):
        return Equality(float("inf"), "the number of updates or of transitions")
    batch = session.replay.sample(4 * TIMED_ENV_STEPS, 1, 0)
    obs, action, reward, next_obs, done = zip(*[buffer.buffer[row] for row in batch.index[0]], strict=True)
    transitions = compare(
        [
            ("obs", batch.obs[0], np.array(obs)),  # type: ignore[index]
            ("action", batch.action[0], np.array(action)),
            ("reward", batch.reward[0], np.array(reward)),
            ("next_obs", batch.next_obs[0], np.array(next_obs)),  # type: ignore[index]
            ("discount", batch.discount[0], np.float32(0.99) * (1 - np.array(done, dtype=np.float32))),
        ]
    )
    if transitions.max_error > 1e-6:  # one other action and the two go separate ways
        return Equality(float("inf"), f"{transitions.where} of the transitions stored")
    return compare([("parameters", session.learner.lane.parameters(), flat(agent.online.parameters()))])


def _plain_env(variant: str, settings: DQNSettings) -> tuple[gymnasium.Env, int]:
    """Gymnasium's CartPole that starts its episodes where ours does, and the seed to reset it with."""
    seeds = derive_seeds(settings.seed, 1, "env", 0)
    env = gymnasium.make("CartPole-v1")
    if variant == "gymnasium":
        return env, gymnasium_seeds(seeds)[0]
    return _StartsLike(env, CartPole(1, seeds)), 0


class _StartsLike(gymnasium.Wrapper):
    """Puts the pole where the next episode of our own env starts."""

    def __init__(self, env: gymnasium.Env, source: CartPole) -> None:
        super().__init__(env)
        self._source = source

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        _, info = self.env.reset(**options)
        obs, _ = self._source.reset()
        self.unwrapped.state = self._source.get_state()["body"][0]  # type: ignore[attr-defined]
        return obs[0], info
