"""Linear layers with learned, factorised Gaussian noise (Fortunato et al. 2018, equations 9-11)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class NoisyLinear(nn.Module):
    """y = (W + sigma_W * f(e_out) f(e_in)^T) x + b + sigma_b * f(e_out).

    The noise lives in two buffers that `resample_noise` fills and `silence_noise` zeroes, so that a forward is a pure
    function of parameters and buffers.
    """

    def __init__(self, num_in: int, num_out: int, sigma: float) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(num_in)
        self.weight = nn.Parameter(torch.empty(num_out, num_in).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(num_out).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((num_out, num_in), sigma * bound))
        self.bias_sigma = nn.Parameter(torch.full((num_out,), sigma * bound))
        self.register_buffer("noise_in", torch.zeros(num_in), persistent=False)
        self.register_buffer("noise_out", torch.zeros(num_out), persistent=False)

    noise_in: Tensor
    noise_out: Tensor

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight + self.weight_sigma * torch.outer(self.noise_out, self.noise_in)
        return functional.linear(x, weight, self.bias + self.bias_sigma * self.noise_out)


def resample_noise(network: nn.Module, generator: torch.Generator) -> None:
    """New noise in every noisy layer: f(e) = sign(e) sqrt(|e|) of a standard normal e."""
    for buffer in _noise_buffers(network):
        buffer.normal_(generator=generator)
        buffer.copy_(buffer.sign() * buffer.abs().sqrt())


def silence_noise(network: nn.Module) -> None:
    """No noise: the mean network, for evaluation."""
    for buffer in _noise_buffers(network):
        buffer.zero_()


def _noise_buffers(network: nn.Module) -> list[Tensor]:
    layers = [layer for layer in network.modules() if isinstance(layer, NoisyLinear)]
    return [buffer for layer in layers for buffer in (layer.noise_in, layer.noise_out)]
