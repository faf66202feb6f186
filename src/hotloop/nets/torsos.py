"""From an observation to features."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

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
