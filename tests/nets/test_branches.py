"""Branches and the attention over them."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from hotloop.core.errors import SettingsError
from hotloop.core.types import ArraySpec
from hotloop.nets.branches import BranchAttention
from hotloop.nets.build import QNetwork, build_q_network, mlp_layout
from hotloop.presets.network_settings import BranchSettings, NetworkSettings
from hotloop.workloads.sfc.env import PARTS

SMALL = {"row_width": 2, "width": 3, "attention": 5, "vector_hidden": (4,)}
BYTES = np.dtype(np.uint8)


def made(spec, num_actions: int = 4, branches=None, **settings) -> QNetwork:
    network = NetworkSettings(torso="branch_attention", branches=BranchSettings(**(branches or {})), **settings)
    return build_q_network(network, spec, num_actions, seed=1)


def obs_of(spec, rows: int):
    draw = np.random.default_rng(0)
    return {name: torch.from_numpy(draw.random((rows, *part.shape)).astype(part.dtype)) for name, part in spec.items()}


def test_the_specified_network_has_177294_parameters():
    """Branches 10,176 + 25,536 + 25,344, attention 8,449, layers 65,792 + 32,896 + 8,256 + 845."""
    network = made(PARTS, num_actions=13, hidden=(256, 128, 64))
    assert sum(parameter.numel() for parameter in network.parameters()) == 177_294
    assert network(obs_of(PARTS, 5)).shape == (5, 13)


def test_what_it_computes_written_out():
    spec = {"a": ArraySpec((2,)), "b": ArraySpec((3, 2))}
    network, obs = made(spec, branches=SMALL, hidden=()), obs_of({"a": ArraySpec((2,)), "b": ArraySpec((3, 2))}, 2)
    torso = network.torso
    first, table = torso.branches
    a = torch.relu(first.layers[1](torch.relu(first.layers[0](obs["a"]))))
    rows = [torch.relu(table.each_row(obs["b"][:, row])) for row in range(3)]
    b = torch.relu(table.all_rows(torch.cat(rows, dim=1)))
    scores = torch.cat([torso.score(torch.tanh(torso.inner(x))) for x in (a, b)], dim=1)
    weight_a, weight_b = scores.softmax(1).unbind(1)
    expected = torch.cat([a, b, weight_a[:, None] * a + weight_b[:, None] * b], dim=1)
    assert_close(torso(obs), expected)
    assert_close(torso.attention(obs), {"a": weight_a, "b": weight_b})


@pytest.mark.parametrize("count", [1, 2, 5])
def test_any_number_of_parts_will_do_and_attention_adds_up_to_one(count):
    spec = {f"part {i}": ArraySpec((i + 1,) if i % 2 else (2, i + 1)) for i in range(count)}
    network = made(spec, branches=SMALL, hidden=(8,))
    weights = network.torso.attention(obs_of(spec, 6))
    assert list(weights) == sorted(spec)
    assert_close(sum(weights.values()), torch.ones(6))
    network(obs_of(spec, 6)).square().sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize("options", [{"dueling": True}, {"noisy": True}, {"atoms": 7}, {"dueling": True, "atoms": 7}])
def test_it_combines_with_every_head(options):
    network = made(PARTS, branches=SMALL, hidden=(8,), **options)
    assert network(obs_of(PARTS, 3)).shape == ((3, 4, 7) if "atoms" in options else (3, 4))


def test_the_order_of_the_parts_in_a_dict_does_not_matter():
    network, obs = made(PARTS, branches=SMALL), obs_of(PARTS, 3)
    assert_close(network(obs), network(dict(reversed(obs.items()))))


def test_bytes_and_single_numbers_are_parts_too():
    spec = {"board": ArraySpec((2, 2), BYTES), "speed": ArraySpec(())}
    network = made(spec, branches=SMALL)
    assert network({"board": torch.zeros(3, 2, 2, dtype=torch.uint8), "speed": torch.zeros(3)}).shape == (3, 4)


def test_observations_without_named_vectors_and_tables_are_refused():
    with pytest.raises(SettingsError, match="dict-obs keep"):
        made(ArraySpec((152,)))
    with pytest.raises(SettingsError, match="vectors or tables"):
        made({"image": ArraySpec((4, 4, 3), BYTES)})


def test_it_is_no_plain_multilayer_network():
    assert mlp_layout(NetworkSettings(torso="branch_attention"), ArraySpec((4,)), 2) is None
    assert isinstance(made(PARTS).torso, BranchAttention)
