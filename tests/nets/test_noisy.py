"""Noisy layers: silent, sampled, factorized."""

import math

import pytest
import torch
from torch.testing import assert_close

from hotloop.core.types import ArraySpec
from hotloop.nets.build import build_q_network
from hotloop.nets.modules import NoisyLinear, resample_noise, silence_noise
from hotloop.presets.network_settings import NetworkSettings

NETWORK = build_q_network(NetworkSettings(noisy=True, dueling=True), ArraySpec((3,)), 4, 0)
OBS = torch.tensor([[1.0, -2.0, 3.0]])


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_without_noise_a_layer_is_an_ordinary_linear_one():
    layer = NoisyLinear(3, 2, 0.5)
    expected = torch.nn.functional.linear(OBS, layer.weight, layer.bias)
    assert_close(layer(OBS), expected)
    resample_noise(layer, seeded(0))
    assert not torch.allclose(layer(OBS), expected)
    silence_noise(layer)
    assert_close(layer(OBS), expected)


def test_new_noise_changes_the_answer_and_the_same_seed_gives_the_same():
    answers = []
    for seed in (1, 2, 1):
        resample_noise(NETWORK, seeded(seed))
        answers.append(NETWORK(OBS))
    assert not torch.allclose(answers[0], answers[1])
    assert torch.equal(answers[0], answers[2])
    assert torch.equal(NETWORK(OBS), answers[2])  # a forward draws nothing


def test_weight_noise_has_rank_one_and_shares_the_outputs_noise_with_the_bias():
    layer = NoisyLinear(5, 4, 0.5)
    resample_noise(layer, seeded(3))
    silent_bias = layer.bias.detach()
    noise = (
        torch.stack([layer(row[None])[0] - layer(torch.zeros(1, 5))[0] for row in torch.eye(5)], dim=1) - layer.weight
    )
    scaled = noise / layer.weight_sigma
    assert torch.linalg.matrix_rank(scaled.detach(), tol=1e-4) == 1
    bias_noise = (layer(torch.zeros(1, 5))[0] - silent_bias) / layer.bias_sigma
    assert_close(scaled, torch.outer(bias_noise, layer.noise_in), atol=1e-5, rtol=1e-4)


def test_noise_is_the_signed_root_of_a_normal():
    layer = NoisyLinear(20_000, 1, 0.5)
    resample_noise(layer, seeded(4))
    noise = layer.noise_in
    assert abs(noise.mean().item()) < 0.03
    assert noise.square().mean().item() == pytest.approx(math.sqrt(2 / math.pi), abs=0.03)  # E|e|
    normal = torch.zeros(20_000).normal_(generator=seeded(4))
    assert_close(noise, normal.sign() * normal.abs().sqrt())


def test_sizes_at_the_start_are_the_papers():
    layer = NoisyLinear(16, 3, 0.5)
    assert layer.weight.abs().max() <= 0.25  # 1 / sqrt(16)
    assert layer.weight_sigma.unique().tolist() == layer.bias_sigma.unique().tolist() == [0.125]  # 0.5 / sqrt(16)


def test_every_linear_layer_of_a_noisy_network_is_noisy():
    assert not [layer for layer in NETWORK.modules() if isinstance(layer, torch.nn.Linear)]
    assert len([layer for layer in NETWORK.modules() if isinstance(layer, NoisyLinear)]) == 4
