"""Executes actor-critic updates on graphs of different size: PyTorch, with attention in machine code on a CPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from hotloop.core.graphs import Graphs
from hotloop.core.types import Array, GraphRollout
from hotloop.lanes.graph_numbers import graph_failure, graph_fields, graph_minibatch
from hotloop.lanes.graph_objective import GraphRows, graph_objective
from hotloop.lanes.guarded import At
from hotloop.lanes.numbers import FailedUpdate
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
        self.adam = PolicyAdam(spec, self.network)
        self.parameters, self.load_parameters = self.adam.parameters, self.adam.load_parameters
        self.state, self.load_state = self.adam.state, self.adam.load_state
        self._precision, self._half = precision, precision == "bfloat16"

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
                measured.append(self._one_update(rollout, chosen, clip, At(float(lr[j]), first_update + j + 1)))
            if moved_too_far(self.spec, measured[begun:]):
                break
        return PolicyStats(torch.stack(measured, 1))

    def _one_update(self, rollout: GraphRollout, chosen: Array, clip: float, at: At) -> Tensor:
        graphs = to_tensors(rollout.obs.take(chosen), self.device)
        fields = {name: self._tensor(field) for name, field in graph_fields(rollout, chosen).items()}
        rows = GraphRows(node_graph=graphs.node_graph, **fields)
        terms = graph_objective(self.spec, self._compute(graphs), rows, self._part_weights, clip)
        norm, made = self.adam.descend(terms.loss, at)
        if not made:
            failed = FailedUpdate(at.number, at.lr, self.state(), graph_minibatch(rollout, chosen, clip))
            weights = self._part_weights.numpy()
            raise graph_failure(self.spec, self.network, self._precision, weights, failed)
        return torch.cat((terms.measures, norm[None]))

    def _tensor(self, array: Array | None) -> Any:
        return None if array is None else torch.from_numpy(array).to(self.device, non_blocking=True)
