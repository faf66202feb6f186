"""Executes actor-critic updates on graphs of different size: PyTorch, with attention in machine code on a CPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hotloop.core.graph_kernels import list_nodes
from hotloop.core.graphs import Graphs
from hotloop.core.types import Array, GraphRollout
from hotloop.lanes.graph_objective import GraphRows, graph_objective
from hotloop.lanes.policy_adam import PolicyAdam, moved_too_far
from hotloop.lanes.policy_spec import PolicySpec, PolicyStats
from hotloop.lanes.spec import Precision
from hotloop.nets.graphs.messages import GraphTensors, to_tensors
from hotloop.nets.graphs.network import GraphActorCritic, GraphOutcome


class GraphOutputs(NamedTuple):
    """What the network says of B graphs, on the host."""

    mean: Array  # [B, C]
    log_std: Array  # [B, C]
    value: Array  # [B, P]
    node_logits: Array | None  # [nodes, A]


class GraphLane:
    """Minibatches are gathered from the rollout's graphs as they are, without padding."""

    name = "eager"

    def __init__(
        self, spec: PolicySpec, network: GraphActorCritic, part_weights: Array, device: str, precision: Precision
    ) -> None:
        self.spec = spec
        self.device = torch.device(device)
        self.network = network.to(self.device)
        self._part_weights = self._tensor(part_weights)
        self._adam = PolicyAdam(spec, self.network)
        self.parameters, self.load_parameters = self._adam.parameters, self._adam.load_parameters
        self.state, self.load_state = self._adam.state, self._adam.load_state
        self._half = precision == "bfloat16"

    def _compute(self, graphs: GraphTensors) -> GraphOutcome:
        """The network's products in bfloat16 if asked; everything after it in float32."""
        if not self._half:
            return self.network(graphs)
        with torch.autocast(self.device.type, torch.bfloat16):
            outcome = self.network(graphs)
        return GraphOutcome._make(None if field is None else field.float() for field in outcome)

    @torch.no_grad()
    def forward(self, graphs: Graphs) -> GraphOutputs:
        outcome = self._compute(to_tensors(graphs, self.device))
        fields = (outcome.mean, outcome.log_std, outcome.value, outcome.node_logits)
        return GraphOutputs._make(None if field is None else field.cpu().numpy() for field in fields)

    def update(self, rollout: GraphRollout, order: Array, lr: Array, clip: float, first_update: int) -> PolicyStats:
        """One update per minibatch of `spec.rows` graphs, in the order of `order` [epochs, T * N]."""
        measured: list[Tensor] = []
        for epoch in order:
            begun = len(measured)
            for start in range(0, len(epoch), self.spec.rows):
                chosen, j = epoch[start : start + self.spec.rows], len(measured)
                measured.append(self._one_update(rollout, chosen, clip, float(lr[j]), first_update + j + 1))
            if moved_too_far(self.spec, measured[begun:]):
                break
        return PolicyStats(torch.stack(measured, 1))

    def _one_update(self, rollout: GraphRollout, chosen: Array, clip: float, lr: float, count: int) -> Tensor:
        graphs = to_tensors(rollout.obs.take(chosen), self.device)
        rows = self._rows(rollout, chosen, graphs)
        terms = graph_objective(self.spec, self._compute(graphs), rows, self._part_weights, clip)
        norm = self._adam.descend(terms.loss, lr, count)
        return torch.cat((terms.measures, norm[None]))

    def _rows(self, rollout: GraphRollout, chosen: Array, graphs: GraphTensors) -> GraphRows:
        def by_graph(field: Array) -> Tensor:  # [T, N, ...]
            return self._tensor(field.reshape(-1, *field.shape[2:])[chosen])

        def by_part(field: Array) -> Tensor:  # [P, T, N]
            return self._tensor(np.ascontiguousarray(field.reshape(len(field), -1)[:, chosen].T))

        logits, choices = rollout.node_logits, rollout.choices
        if logits is not None and choices is not None:
            nodes = np.empty(len(graphs.node_graph), np.int64)
            list_nodes(chosen, rollout.obs.node_offsets, nodes)
            logits, choices = logits[nodes], choices[nodes]
        return GraphRows(
            mean=by_graph(rollout.mean),
            log_std=by_graph(rollout.log_std),
            numbers=by_graph(rollout.numbers),
            counts=by_graph(rollout.counts),
            value=by_part(rollout.value[:, :-1]),
            returns=by_part(rollout.returns),
            advantage=by_graph(rollout.advantage),
            node_graph=graphs.node_graph,
            node_logits=None if logits is None else self._tensor(logits),
            choices=None if choices is None else self._tensor(choices),
        )

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)
