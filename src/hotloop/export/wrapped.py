"""An agent as one module that takes what the env shows and gives what the env takes.

A network wired like a graph, as one product per level of it.

Node by node, the exporter needs six minutes for a graph of 264 nodes; by its levels, seconds.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.types import ActionSpec, Array, ArraySpec, BoxActions, DiscreteActions, HybridActions, ObsSpec
from hotloop.learners.action_map import ranges
from hotloop.learners.normalizer import ObsNormalizer, is_float
from hotloop.loop.agents import ActorAgent, Agent
from hotloop.loop.sac_agent import SACAgent
from hotloop.maths import td
from hotloop.nets.modules import as_floats
from hotloop.nets.topology.network import TopologyNetwork
from hotloop.nets.topology.topology_kernels import LEAK


class LevelledTopology(nn.Module):
    """[B, I] -> [B, O], equal to the `TopologyNetwork` but for the order in which sums are taken."""

    def __init__(self, network: TopologyNetwork) -> None:
        super().__init__()
        graph, levels = network.graph, network.graph.levels()
        inputs, outputs = len(graph.inputs), graph.output_positions.tolist()
        linear = set() if network.activate_outputs else set(outputs)
        kinds = {position: (levels[position], position in linear) for position in range(inputs, len(graph.nodes))}
        columns = {position: position for position in range(inputs)}
        self._activated: list[bool] = []
        self._leaky = network.activation == "leaky_relu"
        for place, (kind, group) in enumerate(itertools.groupby(sorted(kinds, key=kinds.__getitem__), kinds.get)):
            nodes = list(group)
            self.register_buffer(f"product_{place}", _product(network, nodes, columns), persistent=False)
            bias = network.bias.detach()[[position - inputs for position in nodes]]
            self.register_buffer(f"bias_{place}", bias, persistent=False)
            assert kind is not None
            self._activated.append(not kind[1])
            columns |= {position: len(columns) + i for i, position in enumerate(nodes)}
        self._outputs = [columns[position] for position in outputs]

    def forward(self, obs: Tensor) -> Tensor:
        values = obs
        for place, activated in enumerate(self._activated):
            nodes = values @ self.get_buffer(f"product_{place}") + self.get_buffer(f"bias_{place}")
            if activated:
                nodes = nn.functional.leaky_relu(nodes, LEAK) if self._leaky else torch.tanh(nodes)
            values = torch.cat((values, nodes), dim=-1)
        return values[:, self._outputs]


def _product(network: TopologyNetwork, nodes: list[int], columns: dict[int, int]) -> Tensor:
    """Weights [values so far, nodes], 0 where there is no edge."""
    graph, weight = network.graph, network.weight.detach().numpy()
    product: Array = np.zeros((len(columns), len(nodes)), np.float32)
    for place, position in enumerate(nodes):
        row = position - len(graph.inputs)
        for edge in range(graph.starts[row], graph.starts[row + 1]):
            product[columns[int(graph.sources[edge])], place] += weight[edge]
    return torch.from_numpy(product)


MASK = "action_mask"


def input_specs(obs_spec: ObsSpec) -> dict[str, ArraySpec]:
    """The inputs by name, in their order: `obs`, or `obs.PART` for each part of a dict."""
    if isinstance(obs_spec, dict):
        return {f"obs.{name}": obs_spec[name] for name in sorted(obs_spec)}
    return {"obs": obs_spec}


class WrappedQ(nn.Module):
    """obs, [mask] -> Q [B, A], the greedy action [B] as the env numbers it."""

    outputs = ("q_values", "action")

    def __init__(self, agent: Agent, masked: bool) -> None:
        super().__init__()
        self._names = _part_names(agent.obs_spec)
        self.normalization = _ObsNormalization(agent)
        self._masked, self._first = masked, agent.first_action
        self.network: Any = agent.network
        self.is_levelled = agent.settings.network.torso == "topology"
        if self.is_levelled:
            torso: Any = agent.network.torso
            self.network = nn.Sequential(_Flat(), LevelledTopology(torso.network), agent.network.head)
        network = agent.settings.network
        support = td.make_support(network.v_min, network.v_max, network.atoms) if network.atoms > 1 else None
        self.register_buffer("support", support, persistent=False)

    support: Tensor | None

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        q = self.network(self.normalization(*inputs))
        if self.support is not None:
            q = td.expected_q(q, self.support)
        return q, td.mask_actions(q, inputs[-1] if self._masked else None).argmax(-1) + self._first


class _Flat(nn.Module):
    """The same as `as_vector`, which asks for `len`: without a compiler's help that fixes the batch."""

    def forward(self, obs: Tensor | dict[str, Tensor]) -> Tensor:
        if isinstance(obs, dict):
            return torch.cat([self.forward(obs[name]) for name in sorted(obs)], dim=-1)
        return as_floats(obs).reshape(obs.shape[0], -1)


class WrappedActor(nn.Module):
    """obs, [mask] -> the policy's outputs [B, O], the value [B], the likeliest action as the env takes it."""

    outputs = ("outputs", "value", "action")

    def __init__(self, agent: ActorAgent, masked: bool) -> None:
        super().__init__()
        self._names = _part_names(agent.obs_spec)
        self._masked, self._spec = masked, agent.action_spec
        self.network = agent.network
        self.normalization = _ObsNormalization(agent)
        self._counts, self._squashed = agent.actions.layout.counts, agent.actions.layout.squashed
        numbers = self._spec.numbers if isinstance(self._spec, HybridActions) else self._spec
        if isinstance(numbers, BoxActions):
            middle, half = ranges(numbers, self._squashed)
            self.register_buffer("range_middle", torch.tensor(middle, dtype=torch.float32), persistent=False)
            self.register_buffer("range_half", torch.tensor(half, dtype=torch.float32), persistent=False)

    range_middle: Tensor
    range_half: Tensor

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        outputs, value = self.network(self.normalization(*inputs))
        return outputs, value, self._action(outputs, inputs[-1] if self._masked else None)

    def _action(self, outputs: Tensor, mask: Tensor | None) -> Tensor:
        if isinstance(self._spec, BoxActions):
            return self._numbers(outputs).reshape(outputs.shape[0], *self._spec.shape)
        choices, start = [], 0
        for count, first in zip(self._counts, _firsts(self._spec, len(self._counts)), strict=True):
            allowed = None if mask is None else mask[:, start : start + count]
            choices.append(td.mask_actions(outputs[:, start : start + count], allowed).argmax(-1) + first)
            start += count
        if isinstance(self._spec, DiscreteActions):
            return choices[0]
        chosen = torch.stack(choices, dim=-1)
        if isinstance(self._spec, HybridActions):
            return torch.cat((chosen.float(), self._numbers(outputs[:, start:])), dim=-1)
        return chosen

    def _numbers(self, means: Tensor) -> Tensor:
        half = self.range_half
        unit = torch.tanh(means) if self._squashed else torch.where(half > 0, means.clamp(-1.0, 1.0), means)
        return self.range_middle + torch.where(half > 0, half, torch.ones_like(half)) * unit


class WrappedSAC(nn.Module):
    """obs -> what the actor says [B, O], its judged action in the env's units. The critics stay behind."""

    outputs = ("outputs", "action")

    def __init__(self, agent: SACAgent) -> None:
        super().__init__()
        self.normalization, self.actor = _ObsNormalization(agent), agent.network.actor
        self._spec = agent.action_spec
        middle, half = ranges(agent.action_spec, True)
        self.register_buffer("range_middle", torch.tensor(middle, dtype=torch.float32), persistent=False)
        self.register_buffer("range_half", torch.tensor(half, dtype=torch.float32), persistent=False)

    range_middle: Tensor
    range_half: Tensor

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        outputs = self.actor(self.normalization(*inputs))
        unit = outputs[:, : len(self._spec.low)].tanh()
        action = self.range_middle + self.range_half * unit
        return outputs, action.reshape(outputs.shape[0], *self._spec.shape)


class _ObsNormalization(nn.Module):
    """The inputs as the network gets them: an array or a dict, normalized where the run did so."""

    def __init__(self, agent: Any) -> None:
        super().__init__()
        self._names = _part_names(agent.obs_spec)
        found = _normalizers(agent) if agent.normalizer is not None else {}
        self._normalized = list(found)
        self.normalizers = nn.ModuleList(found.values())

    def forward(self, *inputs: Tensor) -> Any:
        parts = dict(zip(self._names or ["obs"], inputs, strict=False))
        for name, normalizer in zip(self._normalized, self.normalizers, strict=True):
            parts[name] = normalizer(parts[name])
        return parts["obs"] if self._names is None else parts


class _Normalize(nn.Module):
    """(x - shift) * scale, held between -limit and limit."""

    def __init__(self, shift: np.ndarray, scale: np.ndarray, shape: tuple[int, ...], limit: float) -> None:
        super().__init__()
        self._limit = limit
        self.register_buffer("shift", torch.from_numpy(shift.reshape(shape).copy()), persistent=False)
        self.register_buffer("scale", torch.from_numpy(scale.reshape(shape).copy()), persistent=False)

    shift: Tensor
    scale: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.shift) * self.scale).float().clamp(-self._limit, self._limit)


def wrap(agent: Agent | ActorAgent, masked: bool) -> WrappedQ | WrappedActor | WrappedSAC:
    if isinstance(agent, SACAgent):
        return WrappedSAC(agent).eval()
    wrapped: WrappedQ | WrappedActor = (
        WrappedQ(agent, masked) if isinstance(agent, Agent) else WrappedActor(agent, masked)
    )
    return wrapped.eval()


def normalizer_vectors(normalizer: ObsNormalizer, obs_spec: ObsSpec) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Shift and scale of each part that has them, from the vector in which an agent keeps them."""
    parts = obs_spec if isinstance(obs_spec, dict) else {"obs": obs_spec}
    values, vectors = normalizer.weights(), {}
    for name in sorted(name for name, spec in parts.items() if is_float(spec)):
        size = parts[name].size
        vectors[name] = values[:size], values[size : 2 * size]
        values = values[2 * size :]
    return vectors


def _normalizers(agent: Agent | ActorAgent) -> dict[str, nn.Module]:
    assert agent.normalizer is not None
    parts = agent.obs_spec if isinstance(agent.obs_spec, dict) else {"obs": agent.obs_spec}
    vectors, limit = normalizer_vectors(agent.normalizer, agent.obs_spec), agent.settings.normalize.limit
    return {name: _Normalize(*both, parts[name].shape, limit) for name, both in vectors.items()}


def _part_names(obs_spec: ObsSpec) -> list[str] | None:
    return sorted(obs_spec) if isinstance(obs_spec, dict) else None


def _firsts(spec: ActionSpec, count: int) -> tuple[int, ...]:
    """What the env numbers its choices from."""
    choices = spec.choices if isinstance(spec, HybridActions) else spec
    if isinstance(choices, DiscreteActions):
        return (choices.first,)
    return getattr(choices, "first", ()) or (0,) * count
