"""The whole training loop on 256 games of snake, at equal settings and with as many updates per vector step.

Compared from the start of a run: the plain program gets our initial weights and a tape of our food, exploration and
sampling draws; then both must have stored the same transitions and end with the same parameters. Timed in the midst of
a run: ours trains until its replay is full, then both go on from there: same weights and moments, same games, same rows
in the replay, and for the first call, which is compared, the same draws. Both store time-outs as terminal, as the
program does that these settings come from.

Our training loop on snake and the plain one at equal settings, each to be run in pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

import hotloop
from benchmarks.learners import copy_learner, copy_parameters, flat
from benchmarks.replay import all_rows
from benchmarks.sfc_step import Tape
from benchmarks.snake_parts import compare_rows
from benchmarks.snake_step import make_plain, observation_of, plain_from
from benchmarks.witnesses import snake_dqn
from hotloop.core.rng import derive_seed, derive_seeds
from hotloop.core.schedules import Schedule
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import ArraySpec
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
from hotloop.proof.case import Call, Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare, worst

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
        learning_starts=WARM_UP * scale.num_games,
        batch_size=64,
        timeouts_are_terminal=True,
        log_every=NEVER,  # the plain program logs nothing
        env=EnvSettings(id="snake", num_envs=scale.num_games, options={"observation": observation_of(mode), **options}),
        network=NetworkSettings(hidden=(128, 128)),
        replay=ReplaySettings(buffer_size=scale.capacity),
        exploration=Schedule(kind="decay", start=1.0, end=0.01, factor=0.995, unit="episodes"),
        optimizer=OptimizerSettings(learning_rate=1e-3, max_grad_norm=1.0),
        target=TargetSettings(every=target_every * scale.num_games, unit="env_steps"),
        evaluation=EvaluationSettings(every=NEVER),
        checkpoint=CheckpointSettings(every=NEVER),
    )


def make_config(settings: DQNSettings, updates: int) -> snake_dqn.Config:
    return snake_dqn.Config(
        num_games=settings.env.num_envs,
        updates_per_step=updates,
        learning_starts=settings.learning_starts,
        buffer_size=settings.replay.buffer_size,
        batch_size=settings.batch_size,
        hidden=settings.network.hidden,
        lr=settings.optimizer.learning_rate,
        gamma=settings.gamma,
        epsilon_start=settings.exploration.start,
        epsilon_end=settings.exploration.end,
        epsilon_decay=settings.exploration.factor,
        target_every=settings.target.every,
        max_grad_norm=settings.optimizer.max_grad_norm,
    )


class Ours:
    """Our loop, run up to any point."""

    def __init__(self, settings: DQNSettings) -> None:
        self._timer, self._stop = PhaseTimer(), StopSignals()
        self._journal, self._progress = NullJournal(), NullProgress()
        self.session = build_session(settings, self._timer)
        self._ending_at: dict[int, DQNSettings] = {}

    def run_to(self, env_steps: int) -> Session:
        session = self.session
        if env_steps not in self._ending_at:  # kept: making settings costs as much as a vector step
            self._ending_at[env_steps] = replace(session.settings, total_env_steps=env_steps)
        session.settings = self._ending_at[env_steps]
        for _ in run_loop(session, self._journal, self._timer, self._stop, self._progress):  # type: ignore[arg-type]
            pass
        return session


class OurStretch:
    """`num_steps` vector steps of a run in its midst, over and over: all that shapes their cost is put back."""

    def __init__(self, settings: DQNSettings, start: int, num_steps: int) -> None:
        self._ours = Ours(settings)
        self.session = self._ours.run_to(start)
        self._num_games = settings.env.num_envs
        self._end = self.session.counters.env_steps + num_steps * self._num_games
        self._counters, self._state = self.session.counters.copy(), self.session.state()
        if self.session.replay.size == self.session.replay.buffer_size:
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
        self.agent.epsilon, self.agent.episodes = session.policy.facts()["epsilon"], counters.episodes
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


FULL, SMALL = Scale(256, 100_000, 16), Scale(16, 1_000, 24)
UPDATES = (64, 8, 1)
"""Per vector step: the slow original, and its two remedies."""
TOLERANCE = 1e-4
"""Of the parameters, after updates whose batches come from their own actions; transitions must agree throughout."""
CHECKED_UPDATES = {"eager": 384, "auto": 192}
"""Lane -> updates compared, at most. Snakes see few different things, so that a unit whose input passes zero does so
for many rows at once, and rounding grows: with 64 updates per vector step, 256 games and flood fill the eager lane
equals the plain program in every bit for 320 updates, while the native lane, which sums in another order, has one unit
go another way and is 3e-3 apart after 384. So was one of nine runs of the plain program itself whose initial weights
had been changed by 1e-7."""
TIMED_STEPS = 2
"""Vector steps of one timed call."""
STRETCH = 64
"""Vector steps after which our loop, being so much faster, goes back to where the plain program started."""


@hotloop.cases("the whole training loop on 256 games, U updates per vector step")
def snake_loop_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            family="snake-loop",
            variant=mode,
            size=str(updates),
            build=partial(_build, mode, updates, SMALL if small else FULL),
            tolerance=TOLERANCE,
            quick=(mode, updates) == ("flood-fill", 8),
        )
        for mode in ("flood-fill", "basic")
        for updates in UPDATES
    ]


def _build(mode: str, updates: int, scale: Scale) -> Programs:
    settings = make_settings(mode, updates, scale)
    ours = OurStretch(settings, scale.capacity, STRETCH)
    plain = PlainStretch(ours.session, mode, make_config(settings, updates))

    def growth() -> TwoSizes:
        return TwoSizes(*_tenths(settings), 1.0, "the first tenth", f"the last of {RUN_ENV_STEPS:,} env steps")

    return Programs(
        plain=partial(plain.advance, TIMED_STEPS),
        fast=partial(ours.advance, TIMED_STEPS),
        compare=lambda fast, reference: _compare(ours.session, plain.agent, plain.buffer),
        further=partial(_check, mode, updates, scale),
        tape=plain.tape,
        growth=growth,
        brief=(partial(plain.advance, 1), partial(ours.advance, 1)),
    )


def _tenths(settings: DQNSettings) -> tuple[Call, Call]:
    """The second halves of a run's first and last tenth."""
    half = RUN_ENV_STEPS // 20
    starts, num_steps = (half, RUN_ENV_STEPS - half), half // settings.env.num_envs
    first, last = (OurStretch(settings, start, num_steps) for start in starts)
    return partial(first.advance, TIMED_STEPS), partial(last.advance, TIMED_STEPS)


def _check(mode: str, updates: int, scale: Scale) -> Equality:
    """The lane that is timed, and the eager one for longer."""
    return worst(_check_lane(mode, updates, scale, lane) for lane in CHECKED_UPDATES)


def _check_lane(mode: str, updates: int, scale: Scale, lane: str) -> Equality:
    """Episodes time out after six steps and the target follows every six, so that both happen."""
    settings = make_settings(mode, updates, scale, target_every=6, max_steps=6)
    settings = replace(settings, learner=LearnerSettings(lane=lane))  # type: ignore[arg-type]
    ours, seeds = Ours(settings), derive_seeds(settings.seed, scale.num_games, "env", 0)
    obs_spec = ours.session.collector.envs.obs_spec
    assert isinstance(obs_spec, ArraySpec)
    network = snake_dqn.QNetwork(obs_spec.size, 3, settings.network.hidden)
    copy_parameters(ours.session.learner.lane.parameters(), network)
    tape = Tape(derive_seed(settings.seed, "policy"), derive_seed(settings.seed, "replay"))
    steps = min(scale.checked_steps, WARM_UP + CHECKED_UPDATES[lane] // updates)
    env = make_plain(mode, seeds, max_steps=6)
    agent, buffer, _ = snake_dqn.train(make_config(settings, updates), env, steps, network, tape)
    return _compare(ours.run_to(steps * scale.num_games), agent, buffer)


def _compare(session: Session, agent: snake_dqn.DQN, buffer: snake_dqn.ReplayBuffer) -> Equality:
    counters = session.counters
    ours = counters.updates, counters.episodes, session.replay.size
    theirs = agent.updates, agent.episodes, len(buffer)
    if ours != theirs:
        return Equality(float("inf"), f"updates, episodes and transitions {ours} against {theirs}")
    transitions = compare_rows(session.replay, buffer)
    if transitions.max_error > 0:  # one other action and the two go separate ways
        return Equality(float("inf"), f"{transitions.where} of the transitions stored")
    return compare([("parameters", session.learner.lane.parameters(), flat(agent.online.parameters()))])
