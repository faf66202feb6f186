"""A network wired like any directed acyclic graph: one weight per edge, one bias per node that is no input.

The same network node by node in PyTorch: for other devices, torch.compile and second derivatives.

A graph as a Q-network: its output nodes are the Q-values, with no linear layer after them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hotloop.nets.modules import as_vector, dueling_q
from hotloop.nets.topology.convert import Given, read_networkx, write_networkx
from hotloop.nets.topology.fused import (
    DTYPES,
    ParameterView,
    Wiring,
    all_values,
    as_number,
    fused_forward,
    names_of,
    plain_name,
)
from hotloop.nets.topology.generators import dense, dense_small_world, small_world
from hotloop.nets.topology.graph import Node, Topology, TopologyError
from hotloop.nets.topology.topology_kernels import CODES, LEAK, LEAKY_RELU, LINEAR, TANH
from hotloop.presets.network_settings import NetworkSettings

if TYPE_CHECKING:
    import networkx


class SweepPlan:
    """The graph as plain lists, which torch.compile can look into."""

    def __init__(self, graph: Topology, codes: list[int]) -> None:
        starts, sources = graph.starts.tolist(), graph.sources.tolist()
        self.rows: list[list[int]] = [sources[start:end] for start, end in zip(starts, starts[1:], strict=False)]
        self.widths = [len(row) for row in self.rows]
        self.codes = codes
        self.outputs: list[int] = graph.output_positions.tolist()

    def __deepcopy__(self, memo: Any) -> SweepPlan:
        return self  # nothing in it changes


def plain_values(obs: Tensor, weight: Tensor, bias: Tensor, plan: SweepPlan) -> list[Tensor]:
    """The value [B] of every node by position.

    A list of rows, never rows written into one tensor: autograd refuses the backward of a tensor that was changed after
    its rows were read.
    """
    values = list(obs.unbind(-1))
    parts = zip(plan.rows, plan.codes, weight.split(plan.widths), bias.unbind(), strict=True)
    for sources, code, weights, node_bias in parts:
        before = [values[source] for source in sources]
        total = weights @ torch.stack(before) if before else torch.zeros_like(obs[..., 0])
        values.append(_activate(total + node_bias, code))
    return values


def plain_forward(obs: Tensor, weight: Tensor, bias: Tensor, plan: SweepPlan) -> Tensor:
    """[B, I] -> [B, O]."""
    values = plain_values(obs, weight, bias, plan)
    return torch.stack([values[position] for position in plan.outputs], -1)


def _activate(total: Tensor, code: int) -> Tensor:
    if code == LEAKY_RELU:
        return functional.leaky_relu(total, LEAK)
    return torch.tanh(total) if code == TANH else total


INITIAL_SPREAD = 0.1
Activation = Literal["leaky_relu", "tanh"]


class TopologyNetwork(nn.Module):
    """value(node) = act(bias(node) + sum of weight(edge) x value(source)), in topological order; [B, I] -> [B, O].

    `graph` is a NetworkX DiGraph, or a `Topology` from our generators. Columns of the input and the output stand in the
    order of `inputs` and `outputs`; without them, nodes without predecessors and without successors, ascending.
    Weights and biases that the graph's edges and nodes carry (`weight`, `bias`) are taken, the others drawn from
    Normal(0, 0.1). Without `learn_biases`, biases get no gradient.
    """

    def __init__(
        self,
        graph: networkx.DiGraph | Topology,
        inputs: Sequence[Node] | None = None,
        outputs: Sequence[Node] | None = None,
        *,
        activation: Activation = "leaky_relu",
        activate_outputs: bool = True,
        learn_biases: bool = True,
        fused: bool = True,
    ) -> None:
        super().__init__()
        if activation not in CODES:
            raise TopologyError(f"`activation` is {activation!r}", f"one of {', '.join(CODES)}")
        given: Given = ({}, {})
        if not isinstance(graph, Topology):
            graph, given = read_networkx(graph, inputs, outputs)
        elif inputs is not None or outputs is not None:
            raise TopologyError("a `Topology` has inputs and outputs already", "leave out `inputs` and `outputs`")
        self.graph = graph
        self.activation: Activation = activation
        self.activate_outputs = activate_outputs
        self.learn_biases = learn_biases
        self.fused = fused
        self.weight = nn.Parameter(torch.empty(graph.num_edges).normal_(0.0, INITIAL_SPREAD))
        self.bias = nn.Parameter(torch.empty(len(graph.computed)).normal_(0.0, INITIAL_SPREAD))
        codes = np.full(len(graph.computed), CODES[activation], np.uint8)
        if not activate_outputs:
            codes[graph.output_positions - len(graph.inputs)] = LINEAR
        self._num_inputs = len(graph.inputs)
        self._wiring = Wiring(graph, codes)
        self._plan = SweepPlan(graph, codes.tolist())
        self.weights.update(given[0])
        self.biases.update(given[1])

    def forward(self, obs: Tensor) -> Tensor:
        weight, bias = self.weight, self.bias if self.learn_biases else self.bias.detach()
        if obs.dim() != 2:
            return self._forward_any(obs)
        if self._uses_machine_code(obs, weight):
            return fused_forward(obs, weight, bias, self._wiring)
        return plain_forward(obs, weight, bias, self._plan)

    def _forward_any(self, obs: Tensor) -> Tensor:
        """One observation [I], or more leading axes than one."""
        if obs.dim() == 0:
            raise TopologyError(f"the network has {self._num_inputs} inputs, but was given a single number")
        return self.forward(obs.reshape(-1, obs.shape[-1])).reshape(*obs.shape[:-1], len(self.graph.outputs))

    def _uses_machine_code(self, obs: Tensor, weight: Tensor) -> bool:
        """Whether it can; and a check of what was given, before machine code reads it."""
        if obs.shape[-1] != self._num_inputs:
            raise TopologyError(f"the network has {self._num_inputs} inputs, but was given shape {list(obs.shape)}")
        if obs.dtype != weight.dtype or obs.is_cpu != weight.is_cpu:
            raise TopologyError(
                f"the network computes in {weight.dtype} on {weight.device}, but was given {obs.dtype} on {obs.device}"
            )
        return self.fused and weight.is_cpu and weight.dtype in DTYPES and not torch.compiler.is_compiling()

    @torch.no_grad()
    def activations(self, obs: Tensor) -> dict[Node, Tensor]:
        """The value [B] of every node for observations [B, I], in topological order."""
        if obs.dim() != 2:
            raise TopologyError(f"`activations` takes observations [B, I], but was given shape {list(obs.shape)}")
        weight, bias = self.weight, self.bias
        if self._uses_machine_code(obs, weight):
            rows = all_values(obs, weight, bias, self._wiring).unbind()
        else:
            rows = tuple(plain_values(obs, weight, bias, self._plan))
        return dict(zip(self.graph.nodes, rows, strict=True))

    @property
    def topological_order(self) -> tuple[Node, ...]:
        return self.graph.nodes

    @property
    def weights(self) -> ParameterView:
        """`weights[source, target]`, readable and writable."""
        return ParameterView(self.weight, {edge: i for i, edge in enumerate(self.graph.edges())}, "weight")

    @property
    def biases(self) -> ParameterView:
        """`biases[node]`, readable and writable; inputs have none."""
        return ParameterView(self.bias, {node: i for i, node in enumerate(self.graph.computed)}, "bias")

    def load_named(self, numbers: Mapping[str, Any]) -> None:
        """Weights by "source_to_target" and biases by node id, all of them or none; a saved network of parameter
        dictionaries (`weights.0_to_4`, `biases.4`) fits as it is."""
        names = names_of(self.graph)
        found = {plain_name(key): as_number(value) for key, value in numbers.items()}
        for word, odd in (("unknown", found.keys() - names.keys()), ("missing", names.keys() - found.keys())):
            if odd:
                raise TopologyError(
                    f"{len(odd)} of the numbers are {word}, `{min(odd)}` for one",
                    f"the network needs {len(names)}: `source_to_target` for edges, `node` for biases",
                )
        with torch.no_grad():
            for name, (kind, place) in names.items():
                getattr(self, kind)[place] = found[name]

    def named_numbers(self) -> dict[str, float]:
        """What `load_named` takes."""
        flat = {"weight": self.weight.tolist(), "bias": self.bias.tolist()}
        return {name: flat[kind][place] for name, (kind, place) in names_of(self.graph).items()}

    def to_networkx(self) -> networkx.DiGraph:
        """The graph with the current weights (`weight` of edges) and biases (`bias` of nodes)."""
        return write_networkx(self.graph, self.weight.tolist(), self.bias.tolist())

    def extra_repr(self) -> str:
        graph = self.graph
        return (
            f"{len(graph.nodes)} nodes, {graph.num_edges} edges, {len(graph.inputs)} -> {len(graph.outputs)}, "
            f"{self.activation}{'' if self.activate_outputs else ' but at the outputs'}"
        )


class TopologyTorso(nn.Module):
    """Any observation, flattened, at the input nodes of a generated graph."""

    def __init__(self, settings: NetworkSettings, num_in: int, num_out: int) -> None:
        super().__init__()
        topology = settings.topology
        self.network = TopologyNetwork(
            generate(settings, num_in, num_out),
            activation=topology.activation,
            activate_outputs=topology.activate_outputs,
            learn_biases=topology.learn_biases,
        )

    def forward(self, obs: Tensor | dict[str, Tensor]) -> Tensor:
        return self.network(as_vector(obs))


class OutputNodes(nn.Module):
    """Nodes [B, A x Z] as Q [B, A] or logits [B, A, Z]; dueling: the Z nodes of the state's value come first."""

    def __init__(self, num_actions: int, atoms: int, dueling: bool) -> None:
        super().__init__()
        self.shape = (num_actions, atoms)
        self.dueling = dueling
        self.num_in = num_actions * atoms + (atoms if dueling else 0)

    def forward(self, nodes: Tensor) -> Tensor:
        atoms = self.shape[1]
        if self.dueling:
            q = dueling_q(nodes[..., :atoms].unsqueeze(-2), nodes[..., atoms:].unflatten(-1, self.shape))
        else:
            q = nodes.unflatten(-1, self.shape)
        return q if atoms > 1 else q.squeeze(-1)


def generate(settings: NetworkSettings, num_in: int, num_out: int) -> Topology:
    """The graph of the settings between so many inputs and outputs."""
    topology = settings.topology
    if topology.generator == "small_world":
        shape = (topology.hidden, num_out, topology.ring_degree)
        return small_world(num_in, *shape, topology.rewiring, topology.graph_seed)
    if topology.generator == "dense":
        return dense(num_in, settings.hidden, num_out)
    return dense_small_world(num_in, settings.hidden, num_out, topology.rewiring, topology.graph_seed)
