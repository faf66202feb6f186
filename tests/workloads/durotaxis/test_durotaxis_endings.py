"""Every way an episode can end, and what comes first when several could."""

import numpy as np
import pytest

from tests.workloads.durotaxis.test_durotaxis_env import act, plant

FAR = {"gamma": 15.0, "alpha": 0.5, "noise": 0.5}


def ending(envs, step):
    return envs.record["termination"][0], bool(step.terminated[0]), bool(step.truncated[0])


def test_a_colony_above_the_cap_has_failed():
    envs = plant([(60, 200)] * 3, max_nodes=4, start_nodes=2)
    step = act(envs)
    assert ending(envs, step) == (-15.0, True, False)
    assert step.final_obs.num_nodes.tolist() == [6]
    assert step.obs.num_nodes.tolist() == [2]
    assert step.reward[0] == pytest.approx(-0.3)  # 0.02 * -15
    assert step.episode_stats["colony_size"].tolist() == [6]
    assert step.episode_stats["success"].tolist() == [False]


def test_a_colony_at_the_cap_goes_on():
    envs = plant([(60, 200)] * 2, max_nodes=4, start_nodes=2)
    assert ending(envs, act(envs)) == (0.0, False, False)


def test_a_colony_without_nodes_has_failed():
    envs = plant([(60, 200), (70, 200)], action="per_node")
    step = act(envs, choices=[1, 1])
    assert ending(envs, step) == (-100.0, True, False)
    assert step.reward[0] == pytest.approx(-2.0)
    assert step.episode_stats["final_centroid"].tolist() == [65.0]  # the last there was
    assert envs.record["centroid"][0] == 0.0
    assert envs.record["graph"][0] == -5.0 - 4.0  # no population, two unmarked nodes deleted


@pytest.mark.parametrize("outside", [(-1, 200), (601, 200), (300, -0.5), (300, 400.5)])
def test_a_node_outside_ends_it(outside):
    envs = plant([(60, 200), outside])
    assert ending(envs, act(envs)) == (-100.0, True, False)


def test_thirty_steps_to_the_left_in_a_row_end_it():
    for drift, expected in ((28, (0.0, False, False)), (29, (-50.0, True, False))):
        envs = plant([(20, 200), (500, 200)], action="per_node", fields={"drift": drift})
        assert ending(envs, act(envs, choices=[0, 1])) == expected


def test_a_step_to_the_right_forgets_the_drift():
    envs = plant([(20, 200), (500, 200)], action="per_node", fields={"drift": 29})
    assert ending(envs, act(envs, choices=[1, 0])) == (0.0, False, False)
    assert envs.get_state()["drift"].tolist() == [0]


def test_a_node_at_95_per_cent_is_success():
    envs = plant([(560, 200)])
    step = act(envs, **FAR)  # its child, at 575
    assert ending(envs, step) == (500.0, True, False)
    assert step.reward[0] == 10.0  # 0.02 * 500 is the most there is
    assert step.episode_stats["success"].tolist() == [True]
    assert step.episode_stats["final_centroid"][0] == pytest.approx(567.75, abs=0.01)
    envs = plant([(569, 200)])
    assert not act(envs).terminated[0]


def test_the_order_is_too_many_then_outside_then_drift_then_success():
    envs = plant([(590, 200), (60, 500), (60, 200)], max_nodes=5, start_nodes=2)
    assert ending(envs, act(envs))[0] == -15.0
    envs = plant([(590, 200), (60, 500), (60, 200)])
    assert ending(envs, act(envs))[0] == -100.0
    envs = plant([(575, 200), (590, 200)], action="per_node", fields={"drift": 29})
    assert ending(envs, act(envs, choices=[0, 1]))[0] == -50.0


def test_the_last_step_truncates():
    envs = plant([(60, 200)], fields={"steps": 998})
    assert ending(envs, act(envs)) == (0.0, False, False)
    assert ending(envs, act(envs)) == (0.0, False, True)


def test_the_limit_of_every_env_goes_before_the_own_one():
    for limit, options in ((3, {"max_steps": 9, "max_episode_steps": 3}), (4, {"max_steps": 4})):
        envs = plant([(60, 200)], **options)
        assert [act(envs, 0.5).truncated[0] for _ in range(limit)] == [False] * (limit - 1) + [True]


def test_an_empty_colony_may_start_again_twice_round_its_last_centroid():
    envs = plant([(300, 200)], action="per_node", recovery=True, start_nodes=4, reward="full", fields={"steps": 7})
    step = act(envs, choices=[1])
    assert ending(envs, step) == (0.0, False, False)
    assert envs.record["empty_graph_recovery_penalty"].tolist() == [-50.0]
    assert envs.record["num_nodes"].tolist() == [0.0]
    assert step.reward[0] == pytest.approx(-5 - 2 - 50 + 0.01)  # population, deleted unmarked, penalty, survival
    colony = envs.snapshot(0)
    np.testing.assert_allclose(colony["positions"], [(310, 200), (300, 210), (290, 200), (300, 190)], atol=1e-9)
    assert colony["ages"].tolist() == [0] * 4
    x = colony["positions"][:, 0]
    chain = sorted(range(4), key=lambda node: (x[node], node))
    assert {tuple(edge) for edge in colony["edges"].tolist()} == set(zip(chain[:-1], chain[1:], strict=True))
    assert step.obs.num_nodes.tolist() == [4]
    assert step.final_obs is step.obs
    assert ending(envs, act(envs, choices=[1] * 4)) == (0.0, False, False)
    assert ending(envs, act(envs, choices=[1] * 4)) == (-100.0, True, False)


def test_a_held_colony_stays_as_it_ended_until_the_next_reset():
    envs = plant([(60, 200)] * 3, max_nodes=4, start_nodes=2)
    envs.hold_finished()
    step = act(envs)
    assert step.obs is step.final_obs
    assert step.obs.num_nodes.tolist() == [6]
    for _ in range(3):  # and has no room to grow
        step = act(envs)
        assert step.terminated.tolist() == [True]
        assert step.obs.num_nodes.tolist() == [6]
        assert step.reward.tolist() == [0.0]
    assert envs.reset()[0].num_nodes.tolist() == [2]
    assert not act(envs, 0.5).terminated[0]
