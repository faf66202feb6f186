"""The parts of a Q-network: torsos, heads and noisy layers.

From an observation to features.

From features to Q-values [B, A], or to logits [B, A, Z] when there are Z > 1 atoms.

Linear layers with learned, factorized Gaussian noise (Fortunato et al. 2018, equations 9-11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

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


class Convolution(NamedTuple):
    channels: int
    kernel: int
    stride: int
    padding: int

    def size_after(self, size: int) -> int:
        return (size + 2 * self.padding - self.kernel) // self.stride + 1


NATURE = (Convolution(32, 8, 4, 0), Convolution(64, 4, 2, 0), Convolution(64, 3, 1, 0))
"""Mnih et al. 2015: of images of 36 x 36 one pixel is left, of 84 x 84 there are 7 x 7."""
NATURE_DENSE = 512
NATURE_SMALLEST = 36


def small_convolutions(height: int, width: int) -> tuple[Convolution, ...]:
    """3x3 of 32, 64 and 64 channels. Stride 1 and padding keep small boards whole; images above 32 pixels are halved
    by each layer."""
    stride = 1 if max(height, width) <= 32 else 2
    return tuple(Convolution(channels, 3, stride, 1) for channels in (32, 64, 64))


class CNN(nn.Module):
    """Three convolutions over [B, height, width, channels], or [B, channels, height, width] where channels come first;
    then an MLP. Those of `nature` are larger and end in a layer of 512."""

    def __init__(
        self,
        shape: tuple[int, ...],
        channels_first: bool,
        hidden: tuple[int, ...],
        activation: str,
        linear: Linear,
        nature: bool = False,
    ) -> None:
        super().__init__()
        height, width, channels = (*shape[1:], shape[0]) if channels_first else shape
        self.channels_first = channels_first
        self.convolutions = nn.ModuleList()
        for layer in NATURE if nature else small_convolutions(height, width):
            self.convolutions.append(nn.Conv2d(channels, *layer))
            channels, height, width = layer.channels, layer.size_after(height), layer.size_after(width)
        self.activation = ACTIVATIONS[activation]()
        hidden = (NATURE_DENSE, *hidden) if nature else hidden
        self.mlp = MLP(channels * height * width, hidden, activation, linear)
        self.num_out = self.mlp.num_out

    def forward(self, obs: Tensor) -> Tensor:
        x = as_floats(obs) if self.channels_first else as_floats(obs).permute(0, 3, 1, 2)
        for convolution in self.convolutions:
            x = self.activation(convolution(x))
        return self.mlp(x)


class JoinedTorso(nn.Module):
    """Parts by name -> features: each image through convolutions of its own, everything else as it is; all side by
    side, in the order of their names, through the hidden layers."""

    def __init__(self, images: dict[str, CNN], num_rest: int, mlp: Callable[[int], MLP]) -> None:
        super().__init__()
        self.names = sorted(images)
        self.images = nn.ModuleList(images[name] for name in self.names)
        self.mlp = mlp(num_rest + sum(image.num_out for image in images.values()))
        self.num_out = self.mlp.num_out

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        features = [image(_with_channels(obs[name])) for name, image in zip(self.names, self.images, strict=True)]
        rest = {name: part for name, part in obs.items() if name not in self.names}
        return self.mlp(torch.cat([*features, as_vector(rest)] if rest else features, dim=-1))


def _with_channels(image: Tensor) -> Tensor:
    """[B, height, width] in grey has one channel."""
    return image.unsqueeze(-1) if image.dim() == 3 else image


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
