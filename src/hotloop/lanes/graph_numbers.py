"""The tensors of an actor-critic update on graphs that failed, in the order in which they are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from hotloop.core.graph_kernels import list_nodes
from hotloop.core.graphs import Graphs
from hotloop.core.types import Array, GraphRollout
from hotloop.lanes.graph_objective import GraphRows, graph_objective
from hotloop.lanes.numbers import (
    FailedUpdate,
    Named,
    NotFiniteError,
    as_arrays,
    as_tensors,
    explained,
    forward_of,
    parameters_of,
    tensors_of_state,
    tensors_of_step,
)
from hotloop.lanes.policy_numbers import ROLLOUT, tensors_of_batch, tensors_of_terms
from hotloop.lanes.policy_spec import PolicySpec
from hotloop.nets.graphs.messages import to_tensors
from hotloop.nets.graphs.network import GraphOutcome


def graph_failure(
    spec: PolicySpec, network: nn.Module, precision: str, part_weights: Array, failed: FailedUpdate
) -> NotFiniteError:
    return explained(failed, graph_tensors(spec, network, precision, part_weights, failed))


def graph_fields(rollout: GraphRollout, chosen: Array) -> dict[str, Any]:
    """Of the graphs `chosen` [B] all that an update takes but the graphs themselves, under the names of `GraphRows`."""

    def by_graph(field: Array) -> Array:  # [T, N, ...]
        return field.reshape(-1, *field.shape[2:])[chosen]

    def by_part(field: Array) -> Array:  # [P, T, N]
        return np.ascontiguousarray(field.reshape(len(field), -1)[:, chosen].T)

    logits, choices = rollout.node_logits, rollout.choices
    if logits is not None and choices is not None:
        nodes = np.empty(int(rollout.obs.num_nodes[chosen].sum()), np.int64)
        list_nodes(chosen, rollout.obs.node_offsets, nodes)
        logits, choices = logits[nodes], choices[nodes]
    return {
        "mean": by_graph(rollout.mean),
        "log_std": by_graph(rollout.log_std),
        "numbers": by_graph(rollout.numbers),
        "counts": by_graph(rollout.counts),
        "value": by_part(rollout.value[:, :-1]),
        "returns": by_part(rollout.returns),
        "advantage": by_graph(rollout.advantage),
        "node_logits": logits,
        "choices": choices,
    }


def graph_minibatch(rollout: GraphRollout, chosen: Array, clip: float) -> dict[str, Any]:
    """The same with its graphs and the rollout's rewards, as a failed update keeps it."""
    whole = {name: getattr(rollout, name) for name in ROLLOUT}
    obs = rollout.obs.take(np.ascontiguousarray(chosen)).arrays()
    return as_arrays({"obs": obs, "rollout": whole, **graph_fields(rollout, chosen), "clip": clip})


def graph_tensors(
    spec: PolicySpec, network: nn.Module, precision: str, part_weights: Array, failed: FailedUpdate
) -> Named:
    yield from tensors_of_state(network, failed)
    yield from tensors_of_batch(failed)
    graphs = to_tensors(Graphs(**failed.batch["obs"]))
    batch = as_tensors({name: value for name, value in failed.batch.items() if name != "obs"})
    batch["node_graph"] = graphs.node_graph
    rows = GraphRows._make(batch.get(name) for name in GraphRows._fields)
    values, parameters = parameters_of(network, failed.state["online"])
    computed = forward_of(network, parameters, precision)(graphs)
    outcome = GraphOutcome._make(None if field is None else field.float() for field in computed)
    yield from ((f"policy {name}", field.detach()) for name, field in _policy_outputs(outcome))
    yield "value", outcome.value.detach()
    terms = graph_objective(spec, outcome, rows, torch.from_numpy(part_weights), float(batch["clip"]))
    yield from tensors_of_terms(terms)
    yield from tensors_of_step(spec, network, failed, values, terms.loss)


def _policy_outputs(outcome: GraphOutcome) -> list[tuple[str, torch.Tensor]]:
    named = zip(outcome._fields, outcome, strict=True)
    return [(name, field) for name, field in named if field is not None and name != "value"]
