"""Policies that do not learn: by hand, allowed at all times, and through the command line."""

import json

import numpy as np
import pytest

from hotloop.cli.main import main
from hotloop.core.errors import EnvError
from hotloop.core.rng import derive_seeds
from hotloop.envs.cartpole import CartPole
from hotloop.envs.registry import make_baseline
from hotloop.workloads.sfc.env import Sfc
from tests.workloads.sfc.test_sfc_env import FW, INDUSTRY, INDUSTRY_SLOT, NAT, WAIT, only_two, two_centres


def chosen(envs, name):
    return int(make_baseline(name, envs, "sfc", 0).act({}, None)[0])


def test_the_rule_wants_the_centre_with_most_free_cpu_and_then_stays_there():
    """Half of centre 0 is taken: the request's NAT goes to centre 1, and its FW stays with it."""
    envs = only_two()
    state = two_centres(envs)
    state["free_cpu"][0, :2] = [50, 100]
    envs.set_state(state)
    assert chosen(envs, "heuristic") == WAIT  # visiting 0
    envs.step(np.array([WAIT]))
    assert chosen(envs, "heuristic") == NAT  # visiting 1
    envs.step(np.array([NAT]))
    for _ in range(6):
        envs.step(np.array([WAIT]))
    state = envs.get_state()
    assert state["visited"][0] == 0
    assert chosen(envs, "heuristic") == WAIT
    envs.step(np.array([WAIT]))
    assert chosen(envs, "heuristic") == FW


def test_the_nearest_is_where_the_request_is_unless_it_is_full():
    envs = only_two()
    state = two_centres(envs)
    state["free_cpu"][0, :2] = [50, 100]
    envs.set_state(state)
    assert chosen(envs, "nearest") == NAT  # visiting 0, its source
    state["free_cpu"][0, :2] = [0, 100]
    envs.set_state(state)
    assert chosen(envs, "nearest") == WAIT
    envs.step(np.array([WAIT]))
    assert chosen(envs, "nearest") == NAT


def test_a_centre_without_free_bandwidth_to_it_is_not_wanted():
    envs = only_two()
    state = two_centres(envs)
    state["free_cpu"][0, 0] = 0
    state["free_rate"][0, 0, 1] = state["free_rate"][0, 1, 0] = 69_999
    envs.set_state(state)
    envs.step(np.array([WAIT]))
    assert [chosen(envs, name) for name in ("heuristic", "nearest")] == [WAIT, WAIT]
    assert state["state"][0, INDUSTRY_SLOT] == 1
    assert state["pending"][0, INDUSTRY] == 1


@pytest.mark.parametrize("name", ["heuristic", "nearest", "random"])
def test_what_they_choose_is_allowed(name):
    envs = Sfc(8, derive_seeds(3, 8, "env"), max_data_centres=8)
    policy = make_baseline(name, envs, "sfc", 1)
    obs, mask = envs.reset()
    for _ in range(700):
        action = policy.act(obs, mask)
        assert mask[np.arange(8), action].all()
        step = envs.step(action)
        obs, mask = step.obs, step.action_mask
    assert (envs.get_state()["satisfied"].sum(axis=1) > 0).all()


def test_every_env_can_be_played_at_random_but_has_no_rules():
    envs = CartPole(2, derive_seeds(0, 2, "env"))
    obs, mask = envs.reset()
    policy = make_baseline("random", envs, "cartpole", 0)
    assert {int(one) for _ in range(20) for one in policy.act(obs, mask)} == {0, 1}
    with pytest.raises(EnvError, match="did you mean `random`"):
        make_baseline("randon", envs, "cartpole", 0)
    with pytest.raises(EnvError, match="no policy `heuristic`"):
        make_baseline("heuristic", envs, "cartpole", 0)


def test_a_preset_is_evaluated_with_a_rule(capsys):
    words = ["evaluate", "sfc-dqn", "--policy", "nearest", "--episodes", "2", "--json"]
    options = ["--env.options.max_data_centres", "2"]
    options += ["--env.options.min_request_count", "1", "--env.options.max_request_count", "1"]
    assert main([*words, *options]) == 0
    evaluation = json.loads(capsys.readouterr().out)
    assert 0.5 < evaluation["acceptance"] <= 1
    assert {"delay", "throughput", "cpu_use", "acceptance_voip", "delay_massive_iot"} <= evaluation.keys()
    assert main([*words, "--env.options.max_data_centers", "2"]) == 2
    assert main([*words, "--seeed", "2"]) == 2
    assert main(["evaluate", "sfc-dqn", "--episodes", "2"]) == 2  # a preset has no agent
