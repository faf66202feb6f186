"""The loss of PPO and A2C over graphs: a value for each part of the reward, a choice for each node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.errors import LaneError
from hotloop.core.graph_kernels import list_nodes
from hotloop.core.graphs import Graphs
from hotloop.core.types import Array, GraphRollout
from hotloop.lanes.nonfinite import (
    FailedUpdate,
    Named,
    as_arrays,
    as_tensors,
    bound_network,
    tensors_of_state,
    tensors_of_step,
)
from hotloop.lanes.objective import ONLINE, Network, Networks, Outcome, Stage
from hotloop.lanes.policy_objective import (
    MEASURES,
    WHOLE,
    Minibatches,
    PolicySpec,
    kl_above_limit,
    tensors_of_rollout,
    tensors_of_terms,
)
from hotloop.lanes.spec import Lane
from hotloop.maths import distributions, ppo
from hotloop.maths.distributions import graph_distribution
from hotloop.maths.gae import normalize
from hotloop.nets.graphs.attention import GraphTensors, to_tensors


class GraphBatch(NamedTuple):
    """B graphs of a rollout as tensors on the learner's device."""

    graphs: GraphTensors
    mean: Tensor  # [B, C], of the policy that acted; so is the next
    log_std: Tensor  # [B, C]
    numbers: Tensor  # [B, C]
    counts: Tensor  # [B, C] bool
    value: Tensor  # [B, P], before the update
    returns: Tensor  # [B, P]
    advantage: Tensor  # [B]
    node_logits: Tensor | None  # [nodes, A], of the policy that acted
    choices: Tensor | None  # [nodes] int64


class GraphShared(NamedTuple):
    """What all minibatches of a rollout have in common."""

    clip: float
    part_weights: Tensor  # [P]


class GraphOutputs(NamedTuple):
    """What the network says of B graphs, on the host."""

    mean: Array  # [B, C]
    log_std: Array  # [B, C]
    value: Array  # [B, P]
    node_logits: Array | None  # [nodes, A]


class GraphBatches:
    """Gathered from the rollout's graphs as they are, without padding: every minibatch has a shape of its own."""

    def __init__(self, data: Minibatches, rows: int, device: torch.device) -> None:
        self._data, self._rows, self._device = data, rows, device
        self.per_epoch = data.order.shape[1] // rows

    def one(self, j: int) -> GraphBatch:
        rollout: Any = self._data.rollout
        chosen = np.ascontiguousarray(self._data.chosen(j, self._rows))
        graphs = to_tensors(rollout.obs.take(chosen), self._device)
        fields = {name: self._tensor(field) for name, field in graph_fields(rollout, chosen).items()}
        return GraphBatch(graphs=graphs, **fields)

    def several(self, start: int, count: int) -> GraphBatch:
        raise LaneError("graphs of different size cannot be stacked", "`--learner.lane eager`")

    def _tensor(self, array: Array | None) -> Any:
        return None if array is None else torch.from_numpy(array).to(self._device, non_blocking=True)


def graph_fields(rollout: GraphRollout, chosen: Array) -> dict[str, Any]:
    """Of the graphs `chosen` [B] all that an update takes but the graphs themselves, as `GraphBatch` names it."""

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


class GraphObjective:
    """One stage, one network over graphs; values are weighted by part before they are summed."""

    measures: tuple[str, ...] = MEASURES
    targets: tuple[str, ...] = ()
    acts_in_precision = True
    noisy, accumulate, target_every, target_tau = False, 1, 0, 0.0
    native_title = "over arrays"

    def __init__(self, spec: PolicySpec, part_weights: Sequence[float]) -> None:
        self.spec = spec
        self.stages = (Stage(ONLINE, self.loss),)
        self.part_weights = torch.tensor(part_weights, dtype=torch.float32)

    def loss(self, networks: Networks, batch: GraphBatch, shared: GraphShared) -> Outcome:
        """Means over a minibatch of graphs."""
        spec, outcome = self.spec, networks[ONLINE].forward(batch.graphs)
        of_nodes = (batch.graphs.node_graph, len(batch.mean))
        new = graph_distribution(outcome.mean, outcome.log_std, outcome.node_logits, *of_nodes)
        old = graph_distribution(batch.mean, batch.log_std, batch.node_logits, *of_nodes)
        weight = torch.ones_like(batch.advantage)
        advantage = normalize(batch.advantage, weight) if spec.normalize_advantage else batch.advantage
        log_prob = distributions.graph_action_log_prob(new, batch.numbers, batch.choices, batch.counts)
        ratio = ppo.ratio(
            log_prob, distributions.graph_action_log_prob(old, batch.numbers, batch.choices, batch.counts)
        )
        if spec.policy_loss == "plain":
            policy_loss = ppo.policy_gradient(log_prob, advantage).mean()
        else:
            policy_loss = ppo.clipped_surrogate(ratio, advantage, shared.clip).mean()
        errors = ppo.value_error(outcome.value, batch.value, batch.returns, spec.value_clip)  # [B, P]
        value_loss = (errors @ shared.part_weights).mean()
        entropy = distributions.graph_action_entropy(new, batch.counts).mean()
        loss = policy_loss + spec.vf_coef * value_loss - spec.ent_coef * entropy
        with torch.no_grad():
            kl = distributions.graph_action_kl(old, new, batch.counts).mean()
            clipped = ppo.clip_fraction(ratio, shared.clip).mean()
            return Outcome(loss, torch.stack((loss, policy_loss, value_loss, entropy, kl, clipped)))

    def groups(self, network: nn.Module) -> dict[str, nn.Module]:
        return {ONLINE: network}

    def on_device(self, data: Minibatches, device: torch.device) -> GraphBatches:
        return GraphBatches(data, self.spec.rows, device)

    def call_constants(self, data: Minibatches, networks: Networks) -> GraphShared:
        device = next(iter(networks[ONLINE].parameters.values())).device
        return GraphShared(data.clip, self.part_weights.to(device, non_blocking=True))

    def known_targets(self, target: Network, batches: Any) -> None:
        return None

    def stop_early(self, epoch: Sequence[Tensor]) -> bool:
        return kl_above_limit(self.spec, epoch)

    def obs_tensors(self, obs: Graphs, device: torch.device) -> GraphTensors:
        return to_tensors(obs, device)

    def infer(self, network: Network, obs: GraphTensors, action_mask: Tensor | None) -> tuple[Tensor | None, ...]:
        """Of each graph what `GraphOutputs` names, in its order."""
        outcome = network.forward(obs)
        return outcome.mean, outcome.log_std, outcome.value, outcome.node_logits

    def failure_batch(self, data: Minibatches, j: int, shared: Any = None) -> dict[str, Any]:
        """With its graphs, and the rewards and values of the whole rollout."""
        rollout: Any = data.rollout
        chosen = np.ascontiguousarray(data.chosen(j, self.spec.rows))
        whole = {name: getattr(rollout, name) for name in WHOLE}
        obs = rollout.obs.take(chosen).arrays()
        return as_arrays({"obs": obs, "rollout": whole, **graph_fields(rollout, chosen), "clip": data.clip})

    def nan_search_order(self, network: nn.Module, precision: str, failed: FailedUpdate) -> Named:
        yield from tensors_of_state(network, failed)
        yield from tensors_of_rollout(failed)
        graphs = to_tensors(Graphs(**failed.batch["obs"]))
        arrays = as_tensors({name: value for name, value in failed.batch.items() if name != "obs"})
        batch = GraphBatch._make([graphs, *(arrays.get(name) for name in GraphBatch._fields[1:])])
        values, online = bound_network(network, failed.state["online"], {}, precision)
        outcome = online.forward(graphs)._asdict()
        value = outcome.pop("value")
        yield from ((f"policy {name}", field.detach()) for name, field in outcome.items() if field is not None)
        yield "value", value.detach()
        terms = self.loss({ONLINE: online}, batch, GraphShared(float(arrays["clip"]), self.part_weights))
        yield from tensors_of_terms(terms)
        yield from tensors_of_step(self.spec, network, failed, values, terms.loss)

    def native_problem(self, layout: Any) -> str:
        return "observations are graphs, whose attention is machine code already"

    def native_lane(self, network: nn.Module, layout: Any, batch_size: int) -> Lane:
        raise LaneError("the native lane cannot train this: " + self.native_problem(layout), "`--learner.lane eager`")
