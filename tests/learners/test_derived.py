"""What a run's length and its env's observations decide, by hand numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hotloop.core.graphs import GraphSpec
from hotloop.core.types import ArraySpec
from hotloop.learners.derived import derived_text, resolve
from hotloop.presets.registry import preset

VECTOR, IMAGE = ArraySpec((8,)), ArraySpec((84, 84, 4), np.dtype(np.uint8))
DICT = {"camera": IMAGE, "speed": ArraySpec((3,))}


def of(name: str, obs_spec: Any, **overrides: Any) -> Any:
    return resolve(preset(name, **overrides), obs_spec)


def test_schedules_are_stretched_over_the_run_and_stay_when_it_is_extended() -> None:
    for steps, begun in ((50_000, 0), (90_000, 50_000)):
        settings = of("dqn", VECTOR, total_env_steps=steps, extended_from=begun)
        assert (settings.exploration.over, settings.optimizer.lr_schedule.over) == (10_000, 50_000)
        assert settings.replay.buffer_size == 50_000
    policy = of("ppo", VECTOR, total_env_steps=4_000, clip_schedule={"kind": "linear", "over": "50%"})
    assert (policy.optimizer.lr_schedule.over, policy.clip_schedule.over) == (4_000, 2_000)


@pytest.mark.parametrize(("total", "over"), [(50_000, 10_000), (5_000, 2_000), (1_500, 1_500), (10_000, 2_000)])
def test_a_short_run_still_explores_when_it_begins_to_learn(total: int, over: int) -> None:
    """A fifth of 5,000 env steps is the warm-up itself, which is 1,000."""
    settings = of("dqn", VECTOR, total_env_steps=total)
    assert settings.learning_starts == 1_000
    assert settings.exploration.over == over
    assert (
        of("dqn", VECTOR, total_env_steps=total, exploration={"over": 300}).exploration.over == 300
    )  # as it was given


@pytest.mark.parametrize("name", ["dqn", "ppo"])
@pytest.mark.parametrize(
    ("obs_spec", "width"), [(ArraySpec((32,)), 64), (ArraySpec((33,)), 256), (IMAGE, 256), (DICT, 256)]
)
def test_hidden_layers_by_the_size_of_the_observation(name: str, obs_spec: Any, width: int) -> None:
    assert of(name, obs_spec).network.hidden == (width, width)
    assert of(name, obs_spec, network={"hidden": [0, 7]}).network.hidden == (width, 7)


def test_a_replay_holds_the_run_but_no_more_than_a_million_or_two_gibibytes() -> None:
    assert of("dqn", VECTOR, total_env_steps=5_000_000).replay.buffer_size == 1_000_000
    row = 16 + 2 * 84 * 84 * 4  # head, observation and next one, in bytes
    assert of("dqn", IMAGE, total_env_steps=5_000_000).replay.buffer_size == 2 * 2**30 // row
    assert of("dqn", IMAGE, replay={"buffer_size": 7}).replay.buffer_size == 7


@pytest.mark.parametrize(("obs_spec", "expected"), [(VECTOR, True), (IMAGE, False), (DICT, True)])
def test_observations_are_normalized_where_they_have_floats(obs_spec: Any, expected: bool) -> None:
    assert of("ppo", obs_spec).normalize.obs is expected
    assert of("ppo", obs_spec, normalize={"obs": not expected}).normalize.obs is not expected


def test_a_graph_is_neither_normalized_nor_measured() -> None:
    settings = of("ppo", GraphSpec(node_features=4, edge_features=2, graph_features=1))
    assert (settings.normalize.obs, settings.network.hidden) == (False, (0, 0))


@pytest.mark.parametrize("name", ["dqn", "ppo", "cartpole-dqn", "cartpole-ppo"])
def test_what_is_settled_stays(name: str) -> None:
    once = of(name, VECTOR)
    assert resolve(once, IMAGE) == once
    assert derived_text(once, once) == ""


def test_the_words_name_each_setting_and_its_number() -> None:
    given = preset("ppo", total_env_steps=4_000)
    assert derived_text(given, resolve(given, VECTOR)) == (
        "network.hidden 64 64, normalize.obs true, optimizer.lr_schedule.over 4,000"
    )
