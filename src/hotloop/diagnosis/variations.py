"""The experiments that people make by hand when training is slow, each as an override of a run's settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hotloop.core.settings import as_tree, build, merge
from hotloop.core.values import exact_fraction
from hotloop.core.verdicts import CHANGES_LEARNING, IDENTICAL, TO_ROUNDING
from hotloop.presets.ppo_settings import PPOSettings
from hotloop.presets.registry import RunSettings
from hotloop.presets.run_settings import learns_from_replay

NEVER = 10**15
MOST_WARM_UP = 2_000
"""Env steps an experiment waits for its first update: enough to draw batches from."""
SNAKE_UPDATES = ((64, 1), (16, 1), (1, 1), (16, 4))
"""(updates, n): so many updates at every n-th vector step; the arms of the plan that docs/origins.md goes through."""
SNAKE_GAMES = (32, 64, 256)
"""Numbers of games at once in the same plan."""


@dataclass(frozen=True)
class Variation:
    """One thing changed about a run's settings."""

    name: str
    what: str
    kind: str
    settings: RunSettings


def training_alone(settings: RunSettings, lane: str) -> Any:
    """No evaluation, no checkpoint, no end, updates from early on, on the lane the whole run would take."""
    alone: Any = replace(
        settings,
        learner=replace(settings.learner, lane=lane),  # type: ignore[arg-type]
        total_env_steps=NEVER,
        total_episodes=0,
        evaluation=replace(settings.evaluation, every=NEVER),
        checkpoint=replace(settings.checkpoint, every=NEVER),
    )
    if learns_from_replay(alone):
        soon = min(alone.learning_starts, MOST_WARM_UP)
        return replace(alone, learning_starts=max(soon, _least_warm_up(alone, alone.env.num_envs)))
    return alone


def _least_warm_up(settings: Any, num_envs: int) -> int:
    """Env steps before so many envs have stored their first n-step rows; an update earlier would have no batch."""
    return (settings.n_step - 1) * num_envs


def variations(settings: Any, lane: str, lanes: list[str], cores: int) -> Iterator[Variation]:
    """Each against `settings`, which run on `lane`; of the `lanes` that can do the job, the others are tried."""
    yield Variation("control", "the same again: how far to trust the others", IDENTICAL, settings)
    yield from _less_learning(settings) if learns_from_replay(settings) else _fewer_epochs(settings)
    for num_envs in _sweep(settings):
        what = "updates per env step unchanged"
        yield Variation(f"num_envs {num_envs}", what, CHANGES_LEARNING, _with_envs(settings, num_envs))
    yield Variation("logging off", "no log rows", IDENTICAL, replace(settings, log_every=NEVER))
    cheaper = _cheaper_observation(settings)
    if cheaper is not None:
        yield Variation("basic observation", "expensive observations off", CHANGES_LEARNING, cheaper)
    for name in lanes:
        if name != lane:
            learner = replace(settings.learner, lane=name)
            yield Variation(f"lane {name}", f"instead of {lane}", TO_ROUNDING, replace(settings, learner=learner))
    for threads in sorted({1, 2, cores} - {settings.torch_threads}):
        if threads <= cores:
            changed = replace(settings, torch_threads=threads)
            yield Variation(f"threads {threads}", f"instead of {settings.torch_threads}", TO_ROUNDING, changed)


def _less_learning(settings: Any) -> Iterator[Variation]:
    yield Variation("no updates", "learn nothing", CHANGES_LEARNING, replace(settings, learning_starts=NEVER))
    if settings.env.id == "snake":
        yield from _updates_of_the_plan(settings)
        return
    for divisor in (4, 16):
        fewer = _updates_divided(settings, divisor)
        yield Variation(f"updates x1/{divisor}", f"{fewer.updates_per_env_step} per env step", CHANGES_LEARNING, fewer)


def _updates_of_the_plan(settings: Any) -> Iterator[Variation]:
    """So many updates for each vector step, or for each fourth; what the settings do already is left out."""
    games, as_it_is = settings.env.num_envs, exact_fraction(settings.updates_per_env_step)
    for updates, every in SNAKE_UPDATES:
        ratio = Fraction(updates, every * games)
        if (ratio, every) == (as_it_is, 1) and settings.train_every <= games:
            continue
        changed = replace(settings, updates_per_env_step=str(ratio), train_every=every * games)
        name = f"{updates} update{'s' if updates > 1 else ''}" + (f", every {every}th step" if every > 1 else "")
        what = f"per vector step of {games} games, instead of {as_it_is * games}"
        yield Variation(name, what, CHANGES_LEARNING, changed)


def _fewer_epochs(settings: PPOSettings) -> Iterator[Variation]:
    if settings.n_epochs > 1:
        once = replace(settings, n_epochs=1)
        yield Variation("one epoch", f"instead of {settings.n_epochs}", CHANGES_LEARNING, once)


def _with_envs(settings: Any, num_envs: int) -> Any:
    """Other envs, as much learned: rollouts of as many rows become shorter or longer."""
    changed: dict[str, Any] = {"env": replace(settings.env, num_envs=num_envs)}
    if isinstance(settings, PPOSettings):
        changed["rollout_steps"] = max(1, settings.rollout_steps * settings.env.num_envs // num_envs)
    else:
        changed["learning_starts"] = max(settings.learning_starts, _least_warm_up(settings, num_envs))
    return replace(settings, **changed)


def _updates_divided(settings: Any, divisor: int) -> Any:
    """The same bursts, fewer of them: where updates share a batch, a burst must stay whole."""
    ratio = exact_fraction(settings.updates_per_env_step) / divisor
    burst = ratio * settings.train_every
    whole = burst.denominator == 1 and burst % settings.updates_per_batch == 0
    every = settings.train_every if settings.updates_per_batch == 1 or whole else settings.train_every * divisor
    return replace(settings, updates_per_env_step=str(Fraction(ratio)), train_every=every)


def _sweep(settings: Any) -> list[int]:
    num_envs = settings.env.num_envs
    counts = SNAKE_GAMES if settings.env.id == "snake" else (max(1, num_envs // 8), num_envs * 8)
    return [count for count in counts if count != num_envs]


def _cheaper_observation(settings: RunSettings) -> RunSettings | None:
    if settings.env.options.get("observation", "basic") in ("basic", "grid"):
        return None
    tree = merge(as_tree(settings), {"env": {"options": {"observation": "basic"}}})
    return build(type(settings), tree, source="the doctor")
