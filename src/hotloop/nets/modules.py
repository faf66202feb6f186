"""The parts of a Q-network: torsos, heads and noisy layers.

From an observation to features.

From features to Q-values [B, A], or to logits [B, A, Z] when there are Z > 1 atoms.

Linear layers with learned, factorised Gaussian noise (Fortunato et al. 2018, equations 9-11).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

Linear = Callable[[int, int], nn.Module]


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "selu": nn.SELU,
    "leaky_relu": nn.LeakyReLU,
}


def as_vector(obs: Tensor | dict[str, Tensor]) -> Tensor:
    """Any observation as [B, F] floats: parts of a dict side by side in the order of their names, bytes scaled to 0..1.

    Not in the dict's own order: that is lost in a file, and a loaded agent would see its inputs permuted.
    """
    if isinstance(obs, dict):
        return torch.cat([as_vector(obs[name]) for name in sorted(obs)], dim=-1)
    return as_floats(obs).reshape(len(obs), -1)


def as_floats(obs: Tensor) -> Tensor:
    return obs.float() / 255.0 if obs.dtype == torch.uint8 else obs.float()


class MLP(nn.Module):
    """Fully connected layers, each followed by its activation; no hidden layers: the flat observation itself."""

    def __init__(self, num_in: int, hidden: tuple[int, ...], activation: str, linear: Linear) -> None:
        super().__init__()
        widths = (num_in, *hidden)
        self.layers = nn.ModuleList(linear(wide, narrow) for wide, narrow in zip(widths, hidden, strict=False))
        self.activation = ACTIVATIONS[activation]()
        self.num_out = widths[-1]

    def forward(self, obs: Tensor | dict[str, Tensor]) -> Tensor:
        x = as_vector(obs)
        for layer in self.layers:
            x = self.activation(layer(x))
        return x


class CNN(nn.Module):
    """Three 3x3 convolutions of 32, 64 and 64 channels over [B, height, width, channels], or [B, channels, height,
    width] where channels come first; then an MLP.

    Stride 1 and padding keep small boards whole; images above 32 pixels are halved by each layer.
    """

    def __init__(
        self, shape: tuple[int, ...], channels_first: bool, hidden: tuple[int, ...], activation: str, linear: Linear
    ) -> None:
        super().__init__()
        height, width, channels = (*shape[1:], shape[0]) if channels_first else shape
        self.channels_first = channels_first
        stride = 1 if max(height, width) <= 32 else 2
        counts = (channels, 32, 64, 64)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, kernel_size=3, stride=stride, padding=1)
            for before, after in zip(counts, counts[1:], strict=False)
        )
        self.activation = ACTIVATIONS[activation]()
        for _ in self.convolutions:
            height, width = (height + stride - 1) // stride, (width + stride - 1) // stride
        self.mlp = MLP(64 * height * width, hidden, activation, linear)
        self.num_out = self.mlp.num_out

    def forward(self, obs: Tensor) -> Tensor:
        x = as_floats(obs) if self.channels_first else as_floats(obs).permute(0, 3, 1, 2)
        for convolution in self.convolutions:
            x = self.activation(convolution(x))
        return self.mlp(x)


class QHead(nn.Module):
    """One linear layer."""

    def __init__(self, num_in: int, num_actions: int, atoms: int, linear: Linear) -> None:
        super().__init__()
        self.shape = (num_actions, atoms) if atoms > 1 else (num_actions,)
        self.output = linear(num_in, num_actions * atoms)

    def forward(self, features: Tensor) -> Tensor:
        return self.output(features).unflatten(-1, self.shape)


def dueling_q(value: Tensor, advantage: Tensor) -> Tensor:
    """Q = V + A - mean_a A (Wang et al. 2016, equation 9), from [B, 1, Z] and [B, A, Z]."""
    return value + advantage - advantage.mean(-2, keepdim=True)


class DuelingHead(nn.Module):
    """A layer for the state's value and one for the advantages, atom by atom where there are atoms."""

    def __init__(self, num_in: int, num_actions: int, atoms: int, linear: Linear) -> None:
        super().__init__()
        self.shape = (num_actions, atoms)
        self.value = linear(num_in, atoms)
        self.advantage = linear(num_in, num_actions * atoms)

    def forward(self, features: Tensor) -> Tensor:
        value = self.value(features).unsqueeze(-2)  # [B, 1, Z]
        advantage = self.advantage(features).unflatten(-1, self.shape)  # [B, A, Z]
        q = dueling_q(value, advantage)
        return q if self.shape[1] > 1 else q.squeeze(-1)


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
