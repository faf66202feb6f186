"""Each entry of the reward record by hand. The usual substrate is 0.05 x + 1: 2 stiff at 20, 3 at 40, 4 at 60."""

import numpy as np
import pytest

from tests.workloads.durotaxis.test_durotaxis_env import HALF, act, plant

FOUR = [(20, 200), (40, 200), (60, 200), (80, 200)]  # 2, 3, 4 and 5 stiff, 3.5 in the mean


def entry(envs, name):
    return envs.record[name][0]


def test_there_are_fourteen_entries():
    envs = plant([(60, 200)])
    act(envs)
    assert list(envs.record) == [
        "total", "graph", "spawn", "delete", "deletion_efficiency", "edge", "centroid", "milestone", "total_node",
        "survival", "empty_graph_recovery_penalty", "termination", "num_nodes", "node_rewards",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ([1, 1, 0, 0], 4.0),  # both marked
        ([1, 0, 0, 0], 0.0),  # one, and one still there
        ([0, 0, 1, 0], -6.0),  # an unmarked one, and two still there
        ([0, 0, 0, 0], -4.0),
    ],
)
def test_deleting_is_judged_by_who_was_marked(choices, expected):
    """Marked: 3 steps old and on softer ground than the mean. The last is too young, the third too stiff."""
    envs = plant(FOUR, ages=[3, 9, 3, 2], action="per_node")
    act(envs, choices=choices)
    assert entry(envs, "delete") == expected


def test_a_young_node_is_never_marked():
    envs = plant(FOUR, ages=[2, 2, 9, 9])
    act(envs)
    assert entry(envs, "delete") == 0.0


def test_deleting_old_nodes_is_efficient():
    """Of 60 steps: 0.05 * (60 - 50) + 0.1 * (59 - 20); of 30: 0.1 * (29 - 20); of 21: nothing."""
    envs = plant(FOUR, ages=[60, 30, 21, 99], action="per_node")
    act(envs, choices=[1, 1, 1, 0])
    assert entry(envs, "deletion_efficiency") == pytest.approx(0.5 + 3.9 + 0.9)


@pytest.mark.parametrize(("m", "expected"), [(0.3125, 2.5), (0.3124, -1.0)])
def test_a_child_pays_where_it_is_stiffer_by_two_and_a_half(m, expected):
    """At x = 8 the ground is 4 stiff: the child settles at 16, where it is 8 * m = 2.5 more, or just not."""
    envs = plant([(8, 200)], m=m, b=4 - 8 * m)
    act(envs, **HALF)
    assert entry(envs, "spawn") == expected


def test_edges_to_the_right_pay_and_edges_to_the_left_cost():
    """Two to the right, one to the left, one hardly aside; and three to children at the right."""
    envs = plant([(50, 200), (70, 200), (50.005, 250)], [(0, 1), (2, 1), (1, 0), (0, 2)])
    act(envs)
    assert entry(envs, "edge") == pytest.approx(5 * 0.5 - 0.05)


def test_the_movement_of_the_centroid_pays_five_a_unit():
    envs = plant([(60, 200)])
    act(envs, **HALF)  # 60 and 68
    assert entry(envs, "centroid") == pytest.approx(20.0)


@pytest.mark.parametrize(("count", "expected"), [(1, 0.1), (25, 0.1), (26, -3 * (1 + 2 / 50)), (50, -6.0)])
def test_the_population_counts_in_graph(count, expected):
    envs = plant([(60, 200)] * count)
    act(envs)
    rest = sum(entry(envs, name) for name in ("centroid", "spawn", "delete", "deletion_efficiency", "edge"))
    assert entry(envs, "graph") - rest == pytest.approx(expected)
    assert entry(envs, "num_nodes") == 2 * count


def test_nodes_are_worth_their_stiffness_and_being_at_the_rim():
    """4 and 4.4 stiff; two nodes are both in the hull; 60 is not in the left 10 %."""
    envs = plant([(60, 200)])
    act(envs, **HALF)
    np.testing.assert_allclose(envs.record["node_rewards"][0], [0.3 * 4 + 0.1, 0.3 * 4.4 + 0.1])
    assert entry(envs, "total_node") == pytest.approx(2.72)


def test_a_node_inside_the_hull_or_at_the_left_is_worth_less():
    square = [(40, 150), (40, 250), (140, 150), (140, 250), (90, 200)]
    envs = plant(square)
    act(envs)
    rewards = envs.record["node_rewards"][0]
    assert rewards[0] == pytest.approx(0.3 * 3 + 0.1 - 0.2)
    assert rewards[4] == pytest.approx(0.3 * 5.5)


def test_stiffness_pays_up_to_a_hundred():
    envs = plant([(100, 200)], m=1.0, b=50.0)
    act(envs)
    assert envs.record["node_rewards"][0][0] == pytest.approx(30.1)


@pytest.mark.parametrize(
    ("y", "cost"), [(11.9, 5.0), (12.0, 2.0), (31.9, 2.0), (32.0, 0.5), (59.9, 0.5), (60.0, 0.0), (389.0, 5.0)]
)
def test_zones_at_top_and_bottom_cost_the_innermost_only(y, cost):
    """3, 8 and 15 % of 400 are 12, 32 and 60."""
    envs = plant([(100, y)])
    act(envs)
    assert envs.record["node_rewards"][0][0] == pytest.approx(0.3 * 6 + 0.1 - cost)


def test_survival_pays_more_from_step_100_on():
    for steps, expected in ((0, 0.01), (98, 0.01), (99, 0.03)):
        envs = plant([(60, 200)], fields={"steps": steps})
        act(envs)
        assert entry(envs, "survival") == expected


def test_milestones_are_paid_once_and_several_at_a_time():
    envs = plant([(310, 200)])
    act(envs)
    assert entry(envs, "milestone") == 200.0  # past 150 and 300
    act(envs)
    assert entry(envs, "milestone") == 0.0
    envs = plant([(149.9, 200)])
    act(envs)
    assert entry(envs, "milestone") == 50.0  # its child


def test_the_default_reward_is_movement_over_the_way_to_the_goal_and_nothing_in_the_first_step():
    envs = plant([(60, 200)])
    assert act(envs, **HALF).reward[0] == 0.0
    envs = plant([(60, 200)], fields={"steps": 1})
    assert act(envs, **HALF).reward[0] == pytest.approx(20 / 599)


def test_the_full_reward_is_the_sum_of_all():
    envs = plant([(149.9, 200)], reward="full")
    step = act(envs, **HALF)
    names = ("graph", "total_node", "survival", "milestone", "termination", "empty_graph_recovery_penalty")
    assert step.reward[0] == pytest.approx(sum(entry(envs, name) for name in names))
    assert entry(envs, "milestone") == 50.0


def test_the_simple_reward_is_deletion_and_a_crowd_only():
    envs = plant(FOUR, ages=[3, 9, 3, 2], action="per_node", reward="simple_delete_only")
    assert act(envs, choices=[1, 1, 0, 0]).reward[0] == 4.0
    envs = plant([(60, 200)] * 50, reward="simple_delete_only")
    assert act(envs).reward[0] == -6.0


def test_the_learned_parts_are_six_of_the_entries():
    envs = plant(FOUR, ages=[3, 9, 3, 2], reward="full")
    step = act(envs, 0.5)
    expected = [entry(envs, name) for name in ("total", "graph", "spawn", "delete", "edge", "total_node")]
    np.testing.assert_allclose(step.reward_parts[0], expected, rtol=1e-6)
    assert step.reward_parts.dtype == np.float32
