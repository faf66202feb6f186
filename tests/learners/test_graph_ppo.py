"""The learner over graphs: advantages part by part, state, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from hotloop.core.errors import LaneError, SettingsError
from hotloop.core.types import NodeAction
from hotloop.lanes.graph_objective import GraphOutputs
from tests.lanes.graph_rollouts import ENVS, PARTS, make_learner, make_rollout, random_graphs
from tests.oracles.gae_oracle import gae_one_env


def test_every_part_has_returns_of_its_own_and_the_policy_follows_the_whole() -> None:
    learner = make_learner(normalize_advantage="minibatch")
    rollout = make_rollout(learner)
    for part in range(PARTS):
        for env in range(ENVS):
            column = (part, slice(None), env)
            flags = rollout.terminated[:, env], rollout.truncated[:, env]
            expected = gae_one_env(
                rollout.reward[column], rollout.value[part, :-1, env], rollout.value[part, -1, env],
                rollout.final_value[column], *flags, 0.99, 0.95,
            )  # fmt: skip
            np.testing.assert_allclose(rollout.returns[column] - rollout.value[part, :-1, env], expected, atol=1e-5)
            if part == 0:
                np.testing.assert_allclose(rollout.advantage[:, env], expected, atol=1e-5)


def test_a_weighted_sum_of_parts_can_be_followed_instead() -> None:
    whole, weighted = make_learner(), make_learner(reward_parts={"advantage": "weighted"})
    one, other = make_rollout(whole), make_rollout(weighted)
    by_part = one.returns - one.value[:, :-1]
    np.testing.assert_allclose(other.advantage, by_part[0] + 0.25 * by_part[1], atol=1e-5)


def test_rewards_are_scaled_part_by_part() -> None:
    plain, scaled = make_learner(), make_learner(normalize={"reward": True})
    one, other = make_rollout(plain), make_rollout(scaled)
    ratios = other.reward / one.reward
    for part in range(PARTS):
        np.testing.assert_allclose(ratios[part], ratios[part].mean(), rtol=1e-4)
    assert ratios[0].mean() != pytest.approx(ratios[1].mean())


def test_a_time_out_is_valued_by_what_it_led_to() -> None:
    rollout = make_rollout(make_learner())
    assert rollout.truncated.sum() == 1
    assert (rollout.final_value[:, 2, 1] != 0).all()
    assert (rollout.final_value[:, ~rollout.truncated] == 0).all()


def test_a_learner_restored_goes_on_exactly() -> None:
    tree = {"normalize": {"reward": True}, "kl_target": 0.01}
    one, other = make_learner(**tree), make_learner(seed=5, **tree)
    one.update(make_rollout(one))
    other.load_state(one.state())
    results = []
    for learner in (one, other):
        learner.update(make_rollout(learner, seed=1))
        results.append(learner.weights())
    np.testing.assert_array_equal(*results)


def test_actions_stay_within_their_bounds_and_nodes_choose_for_themselves() -> None:
    learner = make_learner("per node", network={"log_std": 1.0})
    graphs = random_graphs(np.random.default_rng(0), 50)
    outputs = GraphOutputs._make(learner.lane.infer(graphs))
    numbers, choices = learner.actions.draw(np.array([0], np.uint64), graphs, outputs)
    action = learner.actions.to_env(numbers, choices)
    assert isinstance(action, NodeAction)
    assert (action.numbers >= [-1.0, 0.0]).all()
    assert (action.numbers <= [1.0, 10.0]).all()
    assert len(action.choices) == len(graphs.nodes)
    assert 0.3 < action.choices.mean() < 0.7


def test_lanes_that_need_one_shape_are_refused_by_name() -> None:
    with pytest.raises(LaneError, match="compiled lane cannot train this.*graphs of changing size"):
        make_learner(learner={"lane": "compiled"})


def test_observations_that_come_scaled_are_not_normalized() -> None:
    with pytest.raises(SettingsError, match="normalize.obs"):
        make_learner(normalize={"obs": True})


def test_as_many_weights_are_wanted_as_the_reward_has_parts() -> None:
    parts = make_learner().settings.reward_parts
    parts.require_parts(("total", "graph"))
    with pytest.raises(SettingsError, match="has 2 weights, the env's reward 3 parts") as caught:
        parts.require_parts(("total", "graph", "spawn"))
    assert "total, graph, spawn" in caught.value.hint
