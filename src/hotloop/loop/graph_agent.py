"""A trained agent that acts on graphs, loaded from its run."""

from __future__ import annotations

from typing import Any

import torch

from hotloop.algos.graph_policies import GraphActionMap
from hotloop.algos.ppo import build_graph_network
from hotloop.algos.ppo_settings import PPOSettings
from hotloop.core.errors import EnvError
from hotloop.core.graphs import Graphs, GraphSpec
from hotloop.core.types import Action, Array, GraphActionSpec
from hotloop.lanes.graph_objective import GraphOutputs
from hotloop.nets.graphs.messages import to_tensors


class GraphAgent:
    """`act` on a batch of graphs; `network` is an ordinary `nn.Module`."""

    def __init__(self, settings: PPOSettings, obs_spec: GraphSpec, action_spec: GraphActionSpec) -> None:
        self.settings = settings
        self.obs_spec, self.action_spec = obs_spec, action_spec
        self.actions = GraphActionMap(action_spec)
        self.network = build_graph_network(settings, obs_spec, self.actions, seed=0)

    @property
    def num_weights(self) -> int:
        return sum(parameter.numel() for parameter in self.network.parameters())

    def load_weights(self, values: Array) -> None:
        torch.nn.utils.vector_to_parameters(torch.from_numpy(values.copy()), self.network.parameters())

    def as_policy(self) -> GraphAgent:
        return self

    @torch.no_grad()
    def outputs(self, graphs: Graphs) -> GraphOutputs:
        """Of each graph the distribution of its action and its values, one for each part of the reward."""
        outcome = self.network(to_tensors(graphs, torch.device("cpu")))
        fields = (outcome.mean, outcome.log_std, outcome.value, outcome.node_logits)
        return GraphOutputs._make(None if field is None else field.numpy() for field in fields)

    def act(self, obs: Any, action_mask: Any = None) -> Action:
        """The likeliest action of each graph, as the env takes it."""
        if not isinstance(obs, Graphs) or obs.nodes.shape[1] != self.obs_spec.node_features:
            raise EnvError(
                f"the observation is {type(obs).__name__}, the agent was trained on graphs with "
                f"{self.obs_spec.node_features} numbers per node",
                "give `hotloop.core.graphs.Graphs`, as the env does",
            )
        return self.actions.to_env(*self.actions.best(self.outputs(obs)))
