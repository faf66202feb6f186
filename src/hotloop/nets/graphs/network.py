"""A policy and values of each graph: layers of attention along its edges, and to and from a token of the whole graph.

Shape letters: N nodes and E edges of all B graphs, R = N + B rows, D the width, C numbers of an action, V values.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from hotloop.core.graphs import GraphSpec
from hotloop.nets.graphs.attention import GraphTensors, Messages, attend, segment_sum
from hotloop.presets.network_settings import GraphNetworkSettings

POLICY_GAIN = 0.01
LINK_SCALE = 0.02
LOWEST_LOG_STD, HIGHEST_LOG_STD = -5.0, 1.0
NODE_CHOICES = 2


class GraphOutcome(NamedTuple):
    """What the network makes of B graphs."""

    mean: Tensor  # [B, C] of the numbers before squashing
    log_std: Tensor  # [B, C]
    value: Tensor  # [B, V]
    node_logits: Tensor | None  # [N, 2] where each node has a choice


class GraphLayer(nn.Module):
    """x + attention, then x + feed-forward, each of the normalized rows."""

    def __init__(self, settings: GraphNetworkSettings) -> None:
        super().__init__()
        width = settings.width
        self.heads = settings.heads
        self.attention_norm = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.links = nn.Linear(width, width, bias=False)
        self.attention_out = nn.Linear(width, width)
        self.forward_norm = nn.LayerNorm(width)
        self.forward_in = nn.Linear(width, settings.feed_forward)
        self.forward_out = nn.Linear(settings.feed_forward, width)

    def forward(self, rows: Tensor, links: Tensor, messages: Messages, fused: bool | None) -> Tensor:
        inputs = self.queries_keys_values(self.attention_norm(rows))
        rows = rows + self.attention_out(attend(inputs, self.links(links), messages, self.heads, fused))
        return rows + self.forward_out(gelu(self.forward_in(self.forward_norm(rows))))


class GraphActorCritic(nn.Module):
    """`fused` as in `attend`: whether attention is machine code, None for wherever it can be."""

    def __init__(
        self,
        settings: GraphNetworkSettings,
        spec: GraphSpec,
        numbers: int,
        values: int,
        per_node: bool,
        log_std: float,
        fused: bool | None = None,
    ) -> None:
        super().__init__()
        width = settings.width
        self.fused, self.groups = fused, settings.groups
        self.token_embedding = _embedding(spec.graph_features, width)
        self.node_embedding = _embedding(spec.node_features, width)
        self.edge_embedding = _embedding(spec.edge_features, width)
        self.token_links = nn.Parameter(LINK_SCALE * torch.randn(2, width))
        self.layers = nn.ModuleList(GraphLayer(settings) for _ in range(settings.layers))
        self.final_norm = nn.LayerNorm(width)
        self.simplices = nn.Linear(width, width)
        self.actor = _head(width, 2 * numbers, POLICY_GAIN)
        self.node_head = _start(nn.Linear(2 * width, NODE_CHOICES), POLICY_GAIN) if per_node else None
        self.critic = _head(width, values, 1.0)
        last = self.actor[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.bias[numbers:] = log_std

    def forward(self, batch: GraphTensors) -> GraphOutcome:
        num_nodes = batch.nodes.shape[0]
        nodes, tokens = self._simplicial(batch).tensor_split([num_nodes])
        counts = batch.messages.starts[num_nodes:].diff()  # a token hears once from each node of its graph
        total = segment_sum(nodes, batch.node_graph, tokens.shape[0])
        pooled = torch.cat([total / counts.clamp(min=1).unsqueeze(1), tokens], 1)
        mean, log_std = self.actor(pooled).chunk(2, 1)
        logits = None
        if self.node_head is not None:
            logits = self.node_head(torch.cat([nodes, tokens.index_select(0, batch.node_graph)], 1))
        return GraphOutcome(mean, log_std.clamp(LOWEST_LOG_STD, HIGHEST_LOG_STD), self.critic(pooled), logits)

    def _simplicial(self, batch: GraphTensors) -> Tensor:
        """[R, D] of which each group of D / G sums to 1."""
        rows = torch.cat([self.node_embedding(batch.nodes), self.token_embedding(batch.graph)])
        links = torch.cat([self.edge_embedding(batch.edges), self.token_links])
        for layer in self.layers:
            rows = layer(rows, links, batch.messages, self.fused)
        logits = self.simplices(self.final_norm(rows)).unflatten(1, (self.groups, -1))
        # torch's softmax of the last axis takes 150 ns a row, however short: 1.7 ms here, 0.2 over a middle axis
        return logits.transpose(1, 2).contiguous().softmax(1).transpose(1, 2).flatten(1)


def build_graph_actor_critic(
    settings: GraphNetworkSettings,
    spec: GraphSpec,
    numbers: int,
    values: int,
    per_node: bool,
    log_std: float,
    seed: int,
    fused: bool | None = None,
) -> GraphActorCritic:
    """The network, initialized from `seed` alone (torch's global generator is left as it was)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        return GraphActorCritic(settings, spec, numbers, values, per_node, log_std, fused)


def _embedding(features: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(features, width), nn.GELU(), nn.LayerNorm(width))


def _head(width: int, outputs: int, gain: float) -> nn.Sequential:
    return nn.Sequential(nn.Linear(2 * width, width), nn.GELU(), _start(nn.Linear(width, outputs), gain))


def _start(linear: nn.Linear, gain: float) -> nn.Linear:
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear
