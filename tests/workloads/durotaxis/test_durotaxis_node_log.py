"""Rows of every node: equal to what the plain program, whose nodes carry their ids, would write."""

import numpy as np
import pytest

from benchmarks.durotaxis_step import make_ours, make_plain, random_actions
from hotloop.core.types import NodeAction
from hotloop.workloads.durotaxis.node_log import LoggedColonies

MODES = {
    "ratio": {"max_nodes": 60, "substrate": "random"},
    "per node": {"max_nodes": 40, "action": "per_node", "recovery": True},
    "held at the margin": {"max_nodes": 60, "width": 30.0, "height": 30.0, "max_steps": 9},
}


def plain_rows(colony, chosen, episode):
    return [
        (episode, colony.step_count, node.id, node.x, node.y, node.intensity, node.age, action_of(node, chosen))
        for node in colony.nodes
    ]


def action_of(node, chosen):
    return "" if chosen is None else "delete" if node in chosen else "spawn"


def one_action(action, index, colonies):
    if not isinstance(action, NodeAction):
        return action[index]
    offsets = np.cumsum([0, *(len(colony.nodes) for colony in colonies)])
    return action.numbers[index], action.choices[offsets[index] : offsets[index + 1]].tolist()


@pytest.mark.parametrize("mode", MODES)
def test_ids_actions_and_places_are_those_of_the_plain_program(mode):
    ours, plains = make_ours(3, **MODES[mode]), make_plain(3, **MODES[mode])
    draw, written = np.random.default_rng(1), []
    logged = LoggedColonies(ours, np.full(3, 10**6), 10**6, written.extend)
    logged.reset()
    begun, expected, endings = [0, 0, 0], [], 0
    for step in range(120):
        action = random_actions(draw, ours, None if step % 3 else 0.65)
        asked = [one_action(action, index, plains) for index in range(3)]
        result = logged.step(action)
        for index, colony in enumerate(plains):
            episode = begun[index] * 3 + index + 1
            chosen, _ = colony.read_action(asked[index])
            expected += plain_rows(colony, chosen, episode)
            _, _, terminated, truncated, _ = colony.step(asked[index])
            assert (terminated or truncated) == (result.terminated[index] or result.truncated[index])
            if terminated or truncated:
                expected += plain_rows(colony, None, episode)
                begun[index], endings = begun[index] + 1, endings + 1
                colony.reset()
    assert endings > 3
    assert len(written) == len(expected)
    for mine, plain in zip(written, expected, strict=True):
        assert mine[:3] + mine[6:] == plain[:3] + plain[6:]
        assert mine[3:6] == pytest.approx(plain[3:6], rel=1e-12)


def test_looking_on_changes_nothing_and_ends_with_the_quota():
    alone, watched, draw, written = make_ours(2, max_nodes=30), make_ours(2, max_nodes=30), np.random.default_rng(0), []
    logged = LoggedColonies(watched, np.array([2, 1]), 10**6, written.extend)
    alone.reset()
    logged.reset()
    for _ in range(60):
        action = random_actions(draw, alone)
        one, other = alone.step(action), logged.step(action)
        np.testing.assert_array_equal(one.reward, other.reward)
        for name, values in one.obs.arrays().items():
            np.testing.assert_array_equal(values, other.obs.arrays()[name])
    assert {row.episode for row in written} == {1, 2, 3}


def test_an_episode_that_is_cut_off_is_logged_as_far_as_it_counts():
    envs, written = make_ours(1, max_nodes=500), []
    logged = LoggedColonies(envs, np.array([1]), 3, written.extend)
    logged.reset()
    for _ in range(6):
        logged.step(np.array([[0.5, 5, 2, 0.5, 0]], np.float32))
    assert sorted({row.step for row in written}) == [0, 1, 2]
