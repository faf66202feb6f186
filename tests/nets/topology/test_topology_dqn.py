"""A graph as a Q-network: what its output nodes mean in every variant, and which lane trains it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import hotloop
from hotloop.core.errors import LaneError
from hotloop.core.types import ArraySpec
from hotloop.learners.dqn import DQNLearner
from hotloop.nets.build import build_q_network, mlp_layout
from hotloop.nets.topology.network import OutputNodes
from hotloop.presets.dqn_settings import DQNSettings, LearnerSettings
from hotloop.presets.network_settings import NetworkSettings, TopologySettings

GRAPH = TopologySettings(hidden=8, ring_degree=4, rewiring=0.3)
OBS = ArraySpec((4,))


@pytest.mark.parametrize(("dueling", "atoms", "num_actions"), list(itertools.product([False, True], [1, 7], [1, 3])))
def test_the_graph_has_an_output_node_for_every_number_the_variant_needs(dueling, atoms, num_actions):
    settings = NetworkSettings(torso="topology", topology=GRAPH, dueling=dueling, atoms=atoms)
    network = build_q_network(settings, OBS, num_actions, seed=1)
    assert len(network.torso.network.graph.outputs) == (num_actions + dueling) * atoms
    out = network(torch.randn(5, 4))
    assert out.shape == ((5, num_actions) if atoms == 1 else (5, num_actions, atoms))
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    assert mlp_layout(settings, OBS, num_actions) is None


def test_without_variants_the_output_nodes_are_the_q_values():
    network = build_q_network(NetworkSettings(torso="topology", topology=GRAPH), OBS, 2, seed=1)
    obs = torch.randn(3, 4)
    values = network.torso.network.activations(obs)
    assert_close(network(obs), torch.stack([values[12], values[13]], -1))


def test_a_dueling_graph_s_first_output_is_the_state_s_value():
    q = OutputNodes(2, 1, dueling=True)(torch.tensor([[10.0, 1.0, 3.0]]))
    assert_close(q, torch.tensor([[9.0, 11.0]]))  # 10 + 1 - 2, 10 + 3 - 2


@pytest.mark.parametrize("generator", ["small_world", "dense", "dense_small_world"])
def test_every_generator_makes_a_network_for_any_observation(generator):
    topology = TopologySettings(generator=generator, hidden=8, ring_degree=4, rewiring=0.3)
    settings = NetworkSettings(torso="topology", topology=topology, hidden=(5, 6))
    spec = {"board": ArraySpec((2, 2), np.dtype(np.uint8)), "speed": ArraySpec((3,))}
    network = build_q_network(settings, spec, 2, seed=1)
    obs = {"board": torch.full((6, 2, 2), 255, dtype=torch.uint8), "speed": torch.randn(6, 3)}
    assert network(obs).shape == (6, 2)
    assert len(network.torso.network.graph.inputs) == 7


def test_the_run_s_seed_draws_the_numbers_and_never_the_graph():
    settings = NetworkSettings(torso="topology", topology=GRAPH)
    one, other = (build_q_network(settings, OBS, 2, seed).torso.network for seed in (1, 2))
    assert one.graph.edges() == other.graph.edges()
    assert not torch.equal(one.weight, other.weight)


@pytest.mark.parametrize(
    ("lane", "why"), [("native", "not a plain multilayer network"), ("compiled", "graph of nodes")]
)
def test_lanes_that_cannot_train_it_say_why(lane, why):
    settings = DQNSettings(
        network=NetworkSettings(torso="topology", topology=GRAPH), learner=LearnerSettings(lane=lane)
    )
    with pytest.raises(LaneError, match=why):
        DQNLearner(settings, OBS, 2)


def test_auto_takes_the_eager_lane_however_long_the_run():
    settings = DQNSettings(network=NetworkSettings(torso="topology", topology=GRAPH), total_env_steps=10**9)
    assert DQNLearner(settings, OBS, 2).choice.name == "eager"


@pytest.mark.parametrize(
    "variant",
    [
        {"double": True, "n_step": 3},
        {"network": {"dueling": True}},
        {"loss": "huber", "network": {"atoms": 5, "v_max": 30.0}, "replay": {"prioritized": True}},
        {"optimizer": {"accumulate": 2}, "target": {"every": 1, "tau": 0.01}},
    ],
)
def test_a_run_of_every_variant_trains_and_loads_again(variant, tmp_path: Path):
    tree = {"total_env_steps": 400, "learning_starts": 100, "evaluation": {"episodes": 2, "final_episodes": 2}}
    network = {"topology": {"hidden": 8, "ring_degree": 4}, **variant.get("network", {})}
    settings = hotloop.preset("topology-dqn", **tree, **(variant | {"network": network}), run_dir=str(tmp_path / "run"))
    assert hotloop.train(settings)["updates"] > 0
    assert hotloop.load(tmp_path / "run").act(np.zeros(4, np.float32)) in (0, 1)
