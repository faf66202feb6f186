"""A branch for each named part of an observation, and attention over what the branches say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hotloop.core.errors import SettingsError
from hotloop.core.types import ArraySpec, ObsSpec
from hotloop.nets.modules import ACTIVATIONS, MLP, Linear, as_floats
from hotloop.presets.network_settings import BranchSettings, MLPLayout, NetworkSettings


class TableBranch(nn.Module):
    """[B, rows, columns] -> [B, width]: the same layer for every row, then one over all rows."""

    def __init__(self, shape: tuple[int, ...], settings: BranchSettings, activation: str, linear: Linear) -> None:
        super().__init__()
        rows, columns = shape
        self.each_row = linear(columns, settings.row_width)
        self.all_rows = linear(rows * settings.row_width, settings.width)
        self.activation = ACTIVATIONS[activation]()

    def forward(self, table: Tensor) -> Tensor:
        rows = self.activation(self.each_row(as_floats(table)))
        return self.activation(self.all_rows(rows.flatten(1)))


class BranchAttention(nn.Module):
    """Parts by name -> features: score = V tanh(W x) of each branch's x, softmax over the branches, weighted sum; that
    sum beside the branches themselves goes through the hidden layers.

    A vector has a multilayer branch, a table a `TableBranch`. Branches come in the order of their names, since a
    dict's own order is lost in a file.
    """

    def __init__(self, settings: NetworkSettings, obs_spec: ObsSpec, linear: Linear) -> None:
        super().__init__()
        parts = named_parts(obs_spec)
        branch, activation = settings.branches, settings.activation
        self.names = sorted(parts)
        self.branches = nn.ModuleList(_branch(parts[name].shape, branch, activation, linear) for name in self.names)
        self.inner = linear(branch.width, branch.attention)
        self.score = linear(branch.attention, 1)
        self.mlp = MLP((len(self.names) + 1) * branch.width, settings.hidden, activation, linear)
        self.num_out = self.mlp.num_out

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        said = self._said(obs)
        mixed = (self._weights(said)[:, :, None] * said).sum(1)  # [B, width]
        return self.mlp(torch.cat((said.flatten(1), mixed), dim=-1))

    def attention(self, obs: dict[str, Tensor]) -> dict[str, Tensor]:
        """How much each part counts, [B] by its name; they add up to 1."""
        weights = self._weights(self._said(obs))
        return {name: weights[:, index] for index, name in enumerate(self.names)}

    def _said(self, obs: dict[str, Tensor]) -> Tensor:
        """[B, branches, width]."""
        return torch.stack([branch(obs[name]) for name, branch in zip(self.names, self.branches, strict=True)], dim=1)

    def _weights(self, said: Tensor) -> Tensor:
        return self.score(torch.tanh(self.inner(said))).squeeze(-1).softmax(-1)  # [B, branches]


@dataclass(frozen=True)
class BranchLayout:
    """Such a network as numbers, for the lane that does without modules: parameters lie in the order of the branches,
    layer by layer, then those of the attention, then the hidden layers and heads of `trunk`."""

    title: ClassVar[str] = "branches with attention"

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    settings: BranchSettings
    trunk: MLPLayout


def branch_layout(settings: NetworkSettings, obs_spec: ObsSpec, num_actions: int) -> BranchLayout | None:
    """The layout of the network that `build_q_network` makes; None where it is another one, or has noise, bytes or no
    hidden layers."""
    floats = isinstance(obs_spec, dict) and all(spec.dtype.kind == "f" for spec in obs_spec.values())
    if settings.torso != "branch_attention" or settings.noisy or not settings.hidden or not floats:
        return None
    parts = named_parts(obs_spec)
    names = tuple(sorted(parts))
    joined = (len(names) + 1) * settings.branches.width
    head = (settings.dueling, num_actions, settings.atoms)
    trunk = MLPLayout(joined, settings.hidden, settings.activation, *head)
    return BranchLayout(names, tuple(parts[name].shape or (1,) for name in names), settings.branches, trunk)


def _branch(shape: tuple[int, ...], settings: BranchSettings, activation: str, linear: Linear) -> nn.Module:
    if len(shape) == 2:
        return TableBranch(shape, settings, activation, linear)
    num_in = shape[0] if shape else 1
    return MLP(num_in, (*settings.vector_hidden, settings.width), activation, linear)


def named_parts(obs_spec: ObsSpec) -> dict[str, ArraySpec]:
    """The parts of an observation that has vectors and tables by name."""
    if not isinstance(obs_spec, dict):
        raise SettingsError(
            f"`network.torso` is `branch_attention`, but the observation is one array of shape {obs_spec.shape}",
            "it needs parts with names: `--env.dict-obs keep`, where the env has them",
        )
    for name, spec in obs_spec.items():
        if len(spec.shape) > 2:
            raise SettingsError(
                f"`network.torso` is `branch_attention`, but the part `{name}` has shape {spec.shape}",
                "parts must be vectors or tables",
            )
    return obs_spec
