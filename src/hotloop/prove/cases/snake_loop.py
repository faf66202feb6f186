"""The whole training loop on 256 games of snake, at equal settings and with as many updates per vector step.

Compared from the start of a run: the plain program gets our initial weights and a tape of our food, exploration and
sampling draws; then both must have stored the same transitions and end with the same parameters. Timed in the midst of
a run: ours trains until its replay is full, then both go on from there: same weights and moments, same games, same rows
in the replay, and for the first call, which is compared, the same draws. Both store time-outs as terminal, as the
program does that these settings come from.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hotloop.algos.dqn_settings import DQNSettings, LearnerSettings
from hotloop.core.rng import derive_seed, derive_seeds
from hotloop.core.types import ArraySpec
from hotloop.loop.session import Session
from hotloop.prove.case import Built, Call, Case, Growth
from hotloop.prove.cases.learners import copy_parameters, flat
from hotloop.prove.cases.snake_play import make_plain
from hotloop.prove.cases.snake_push import compare_rows
from hotloop.prove.cases.snake_run import (
    RUN_ENV_STEPS,
    WARM_UP,
    Ours,
    OurStretch,
    PlainStretch,
    Scale,
    make_config,
    make_settings,
)
from hotloop.prove.cases.tape import Tape
from hotloop.prove.equivalence import Equality, compare, worst
from hotloop.prove.reference import snake_dqn

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


def snake_loop_cases(small: bool) -> list[Case]:
    return [
        Case(
            family="snake-loop",
            variant=mode,
            size=str(updates),
            build=partial(_build, mode, updates, SMALL if small else FULL),
            tolerance=TOLERANCE,
            is_default=(mode, updates) == ("flood-fill", 8),
        )
        for mode in ("flood-fill", "basic")
        for updates in UPDATES
    ]


def _build(mode: str, updates: int, scale: Scale) -> Built:
    settings = make_settings(mode, updates, scale)
    ours = OurStretch(settings, scale.capacity, STRETCH)
    plain = PlainStretch(ours.session, mode, make_config(settings, updates))

    def growth() -> Growth:
        return Growth(*_tenths(settings), 1.0, "the first tenth", f"the last of {RUN_ENV_STEPS:,} env steps")

    return Built(
        reference=partial(plain.advance, TIMED_STEPS),
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
