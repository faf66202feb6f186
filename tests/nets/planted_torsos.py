"""Torsos for the tests: good ones, and bad ones with one planted fault each."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Plain(nn.Module):
    def __init__(self, obs_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.linear = nn.Linear(obs_shape[0], 8, bias=False)
        self.norm = nn.LayerNorm(8)

    def forward(self, obs: Tensor) -> Tensor:
        return self.norm(torch.relu(self.linear(obs)))


class Ones(Plain):
    def __init__(self, obs_shape: tuple[int, ...]) -> None:
        super().__init__(obs_shape)
        nn.init.ones_(self.linear.weight)


class Lazy(nn.Module):
    def __init__(self, obs_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.LazyLinear(8), nn.Tanh())

    def forward(self, obs: Tensor) -> Tensor:
        return self.layers(obs)


class WithConstants(Plain):
    def __init__(self, obs_shape: tuple[int, ...]) -> None:
        super().__init__(obs_shape)
        self.register_buffer("scale", torch.full(obs_shape, 0.5))

    def forward(self, obs: Tensor) -> Tensor:
        return super().forward(obs * self.scale)


class Branching(Plain):
    """Looks at the numbers to decide what to compute."""

    def forward(self, obs: Tensor) -> Tensor:
        return super().forward(obs if obs.sum() > 0 else -obs)


class Sums(nn.Module):
    """Of each part, in the order of their names."""

    def __init__(self, obs_shape: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.names = sorted(obs_shape)

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        return torch.stack([obs[name].flatten(1).sum(1) for name in self.names], dim=1)


class Dropping(Plain):
    def forward(self, obs: Tensor) -> Tensor:
        return nn.functional.dropout(super().forward(obs))


class Normalizing(Plain):
    def __init__(self, obs_shape: tuple[int, ...]) -> None:
        super().__init__(obs_shape)
        self.norm = nn.BatchNorm1d(8)


class RandomBuffer(Plain):
    def __init__(self, obs_shape: tuple[int, ...]) -> None:
        super().__init__(obs_shape)
        self.register_buffer("noise", torch.randn(8))


class Breaking(Plain):
    def forward(self, obs: Tensor) -> Tensor:
        return obs @ torch.ones(7, 3)


class Frozen(Plain):
    def __init__(self, obs_shape: tuple[int, ...]) -> None:
        super().__init__(obs_shape)
        self.linear.requires_grad_(False)


class OneNumber(Plain):
    def forward(self, obs: Tensor) -> Tensor:
        return super().forward(obs).sum(1)


class NoShape(nn.Module):
    def __init__(self) -> None:
        super().__init__()


not_a_module = 3
