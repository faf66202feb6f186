"""What follows from a run's length and from what its env shows: shares, widths and capacities as numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotloop.core.graphs import GraphSpec
from hotloop.core.schedules import Schedule
from hotloop.core.settings import as_tree, flatten
from hotloop.core.types import ObsSpec
from hotloop.learners.normalizer import is_float
from hotloop.nets.build import num_features
from hotloop.presets.registry import RunSettings
from hotloop.presets.run_settings import learns_from_replay
from hotloop.replay.layout import make_layout

FEW_NUMBERS = 32
NARROW, WIDE = 64, 256
MOST_TRANSITIONS, MOST_BYTES = 1_000_000, 2 * 2**30
"""Of a replay whose capacity nobody gave. Never by the memory that is free: the same settings are the same run on
every machine, or are refused."""


def resolve(settings: Any, obs_spec: ObsSpec | GraphSpec) -> Any:
    """The settings with nothing left to derive; those that had nothing are equal afterwards. What a run writes down
    stays as it was given, so that a longer one or another env derives anew."""
    planned, optimizer = settings.planned_env_steps, settings.optimizer
    optimizer = replace(optimizer, lr_schedule=optimizer.lr_schedule.resolve(planned))
    network = replace(settings.network, hidden=_hidden(settings.network.hidden, obs_spec))
    obs = _has_floats(obs_spec) if settings.normalize.obs == "auto" else settings.normalize.obs
    normalize = replace(settings.normalize, obs=obs)
    settings = replace(settings, optimizer=optimizer, network=network, normalize=normalize)
    if learns_from_replay(settings):
        capacity = settings.replay.buffer_size or _capacity(planned, obs_spec)
        return replace(
            settings,
            replay=replace(settings.replay, buffer_size=capacity),
            exploration=_exploration(settings),
        )
    return replace(settings, clip_schedule=settings.clip_schedule.resolve(planned))


def _exploration(settings: Any) -> Schedule:
    """A share of the run, but so long that what is learned in the first updates is explored with too: at least as many
    env steps after the warm-up as in it. A run of 5,000 would else be greedy before its first update."""
    given, planned = settings.exploration, settings.planned_env_steps
    found = given.resolve(planned)
    if found == given:
        return found
    least = min(2 * settings.learning_starts, planned)
    return replace(found, over=max(found.over, least))


def _hidden(widths: tuple[int, ...], obs_spec: ObsSpec | GraphSpec) -> tuple[int, ...]:
    if all(widths) or isinstance(obs_spec, GraphSpec):  # a graph's network has other layers
        return widths
    derived = NARROW if num_features(obs_spec) <= FEW_NUMBERS else WIDE
    return tuple(width or derived for width in widths)


def _capacity(planned_env_steps: int, obs_spec: Any) -> int:
    fitting = MOST_BYTES // make_layout(obs_spec, None).row_bytes
    return max(1, min(planned_env_steps, MOST_TRANSITIONS, fitting))


def _has_floats(obs_spec: ObsSpec | GraphSpec) -> bool:
    if isinstance(obs_spec, GraphSpec):
        return False
    return any(map(is_float, obs_spec.values() if isinstance(obs_spec, dict) else [obs_spec]))


def derived_text(given: RunSettings, now: RunSettings) -> str:
    """What was derived, as a line for whoever watches; empty where nothing was."""
    before, after = flatten(as_tree(given)), flatten(as_tree(now))
    changed = [name for name, value in after.items() if value != before[name]]
    return ", ".join(f"{name} {_shown(after[name])}" for name in changed)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(map(str, value)) if isinstance(value, list) else f"{value:,}"
