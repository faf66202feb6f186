"""Networks with a policy and a value: shapes, start, and the order of their parameters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hotloop.core.types import ArraySpec
from hotloop.maths.distributions import ActionLayout
from hotloop.nets.actor_critic import actor_critic_layout, build_actor_critic
from hotloop.presets.network_settings import ActorCriticSettings

VECTOR, IMAGE = ArraySpec((5,)), ArraySpec((6, 6, 2), np.dtype(np.uint8))
HYBRID = ActionLayout((3, 2), continuous=2)


def made(obs_spec=VECTOR, seed: int = 0, **settings):
    return build_actor_critic(ActorCriticSettings(**{"hidden": (8, 7), **settings}), obs_spec, HYBRID, seed)


@pytest.mark.parametrize("shared", [False, True])
def test_outputs_are_logits_and_means_and_there_is_one_value_for_each_row(shared):
    outputs, value = made(shared=shared)(torch.randn(4, 5))
    assert (outputs.shape, value.shape) == ((4, 3 + 2 + 2), (4,))


def test_images_and_dicts_go_through_their_torsos():
    assert made(IMAGE)(torch.zeros(4, 6, 6, 2, dtype=torch.uint8))[0].shape == (4, 7)
    parts = {"a": ArraySpec((2,)), "b": ArraySpec((3,))}
    assert made(parts)({"a": torch.zeros(4, 2), "b": torch.zeros(4, 3)})[1].shape == (4,)


def test_all_actions_start_nearly_equally_likely_and_values_do_not_start_at_zero():
    outputs, value = made()(torch.randn(50, 5))
    assert outputs.abs().max() < 0.05
    assert value.abs().max() > 0.05


def test_hidden_layers_start_orthogonal():
    weight = made().policy_torso.layers[1].weight.detach()  # [7, 8]
    torch.testing.assert_close(weight @ weight.T, 2.0 * torch.eye(7), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shared", "order"),
    [
        (False, ["policy_torso", "policy_head", "value_torso", "value_head", "spread"]),
        (True, ["torso", "value_head", "policy_head", "spread"]),
    ],
)
def test_parameters_lie_as_the_native_lane_reads_them(shared, order):
    names = [name.partition(".")[0] for name, _ in made(shared=shared).named_parameters()]
    assert list(dict.fromkeys(names)) == order


def test_the_deviation_starts_as_asked_and_is_no_parameter_without_numbers():
    assert made(log_std=-0.5).log_std.tolist() == [-0.5, -0.5]
    choices = build_actor_critic(ActorCriticSettings(), VECTOR, ActionLayout((2,)), 0)
    assert choices.log_std.shape == (0,)
    assert "spread.log_std" not in dict(choices.named_parameters())


def test_the_seed_alone_decides_the_start_and_torchs_own_generator_is_left_alone():
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    one, same, other = (torch.nn.utils.parameters_to_vector(made(seed=seed).parameters()) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("obs_spec", "torso", "plain"),
    [
        (VECTOR, "auto", True),
        (ArraySpec((2, 3)), "auto", True),
        (IMAGE, "auto", False),
        (IMAGE, "mlp", False),  # bytes
        (ArraySpec((6, 6, 2)), "auto", False),
        (ArraySpec((6, 6, 2)), "mlp", True),
        ({"a": VECTOR}, "auto", False),
    ],
)
def test_the_native_lane_takes_multilayer_networks_on_floats(obs_spec, torso, plain):
    layout = actor_critic_layout(ActorCriticSettings(torso=torso), obs_spec)
    assert (layout is not None) == plain
