"""An edge-aware graph transformer with an actor and a critic: one graph per forward, or a batch of graphs in one."""

import math
from typing import NamedTuple

import torch
from torch import nn

WIDTH, HEADS, LAYERS, FORWARD_WIDTH, GROUPS = 128, 4, 4, 256, 16


class Outputs(NamedTuple):
    mean: torch.Tensor  # [numbers]
    log_std: torch.Tensor  # [numbers]
    values: torch.Tensor  # [value heads]
    logits: torch.Tensor | None  # [nodes, 2]: spawn or delete


def embedding(num_features):
    return nn.Sequential(nn.Linear(num_features, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH))


def head(num_outputs, gain):
    last = nn.Linear(WIDTH, num_outputs)
    nn.init.orthogonal_(last.weight, gain)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.GELU(), last)


class GraphLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.queries_keys_values = nn.Linear(WIDTH, 3 * WIDTH)
        self.links = nn.Linear(WIDTH, WIDTH, bias=False)
        self.attention_out = nn.Linear(WIDTH, WIDTH)
        self.forward_norm = nn.LayerNorm(WIDTH)
        self.forward_in = nn.Linear(WIDTH, FORWARD_WIDTH)
        self.forward_out = nn.Linear(FORWARD_WIDTH, WIDTH)

    def forward(self, x, links, senders, receivers):
        x = x + self.attention_out(self.attend(self.attention_norm(x), links, senders, receivers))
        return x + self.forward_out(nn.functional.gelu(self.forward_in(self.forward_norm(x))))

    def attend(self, y, links, senders, receivers):
        rows, size = len(y), WIDTH // HEADS
        q, k, v = self.queries_keys_values(y).view(rows, 3, HEADS, size).unbind(1)
        e = self.links(links).view(-1, HEADS, size)
        scores = (q[receivers] * (k[senders] + e)).sum(-1) / math.sqrt(size)  # [messages, heads]
        weights = softmax_by_receiver(scores, receivers, rows)
        messages = weights.unsqueeze(-1) * (v[senders] + e)
        return torch.zeros_like(q).index_add(0, receivers, messages).view(rows, WIDTH)


def softmax_by_receiver(scores, receivers, rows):
    index = receivers.unsqueeze(1).expand_as(scores)
    nothing = scores.new_zeros(rows, scores.shape[1])
    highest = nothing.scatter_reduce(0, index, scores.detach(), "amax", include_self=False)
    exponentials = torch.exp(scores - highest[receivers])
    return exponentials / nothing.index_add(0, receivers, exponentials)[receivers]


class GraphActorCritic(nn.Module):
    def __init__(
        self,
        num_numbers=5,
        per_node=False,
        value_heads=6,
        node_features=11,
        edge_features=3,
        graph_features=19,
        log_std=0.0,
    ):
        super().__init__()
        self.token_embedding = embedding(graph_features)
        self.node_embedding = embedding(node_features)
        self.edge_embedding = embedding(edge_features)
        self.token_links = nn.Parameter(torch.randn(2, WIDTH) * 0.02)
        self.layers = nn.ModuleList(GraphLayer() for _ in range(LAYERS))
        self.final_norm = nn.LayerNorm(WIDTH)
        self.simplices = nn.Linear(WIDTH, WIDTH)
        self.actor = head(2 * num_numbers, gain=0.01)
        nn.init.constant_(self.actor[-1].bias[num_numbers:], log_std)
        if per_node:
            self.node_head = nn.Linear(2 * WIDTH, 2)
            nn.init.orthogonal_(self.node_head.weight, 0.01)
            nn.init.zeros_(self.node_head.bias)
        self.per_node = per_node
        self.critic = head(value_heads, gain=1.0)

    def forward(self, graph):
        """`graph`: a dict of tensors nodes [n, F], edges [e, 2], edge_features [e, K] and graph [S]."""
        z = self.simplicial(self.transform(graph))
        nodes, token = z[:-1], z[-1]
        mean_of_nodes = nodes.mean(0) if len(nodes) else torch.zeros_like(token)
        pooled = torch.cat([mean_of_nodes, token])
        mean, raw_log_std = self.actor(pooled).chunk(2)
        logits = self.node_head(torch.cat([nodes, token.expand_as(nodes)], dim=1)) if self.per_node else None
        return Outputs(mean, raw_log_std.clamp(-5.0, 1.0), self.critic(pooled), logits)

    def transform(self, graph):
        """Rows of all nodes, then the token's [n + 1, WIDTH]."""
        x = torch.cat([self.node_embedding(graph["nodes"]), self.token_embedding(graph["graph"]).unsqueeze(0)])
        links, senders, receivers = self.messages(graph)
        for layer in self.layers:
            x = layer(x, links, senders, receivers)
        return x

    def messages(self, graph):
        """Both ways along every edge, and between the token and every node."""
        count = len(graph["nodes"])
        nodes, token = torch.arange(count), torch.full((count,), count)
        source, target = graph["edges"].unbind(1)
        backwards = graph["edge_features"] * torch.tensor([1.0, -1.0, -1.0])
        to_token, from_token = (link.expand(count, WIDTH) for link in self.token_links)
        links = [self.edge_embedding(graph["edge_features"]), self.edge_embedding(backwards), to_token, from_token]
        return torch.cat(links), torch.cat([source, target, nodes, token]), torch.cat([target, source, token, nodes])

    def simplicial(self, x):
        groups = self.simplices(self.final_norm(x)).view(len(x), GROUPS, WIDTH // GROUPS)
        return groups.softmax(-1).view(len(x), WIDTH)


class BatchedOutputs(NamedTuple):
    mean: torch.Tensor  # [graphs, numbers]
    log_std: torch.Tensor  # [graphs, numbers]
    values: torch.Tensor  # [graphs, value heads]
    logits: torch.Tensor | None  # [all nodes, 2]
    graph_of_node: torch.Tensor  # [all nodes]


class BatchedGraphActorCritic(GraphActorCritic):
    """The same network on many graphs at once: their nodes concatenated, then a token for each."""

    def forward(self, batch):
        """`batch`: what `collate` makes."""
        graph_of_node, count = batch["graph_of_node"], len(batch["graph"])
        z = self.simplicial(self.transform(batch))
        nodes, tokens = z[:-count], z[-count:]
        sums = torch.zeros_like(tokens).index_add(0, graph_of_node, nodes)
        sizes = torch.bincount(graph_of_node, minlength=count).clamp(min=1).unsqueeze(1)
        pooled = torch.cat([sums / sizes, tokens], dim=1)
        mean, raw_log_std = self.actor(pooled).chunk(2, dim=1)
        logits = self.node_head(torch.cat([nodes, tokens[graph_of_node]], dim=1)) if self.per_node else None
        return BatchedOutputs(mean, raw_log_std.clamp(-5.0, 1.0), self.critic(pooled), logits, graph_of_node)

    def transform(self, batch):
        x = torch.cat([self.node_embedding(batch["nodes"]), self.token_embedding(batch["graph"])])
        links, senders, receivers = self.messages(batch)
        for layer in self.layers:
            x = layer(x, links, senders, receivers)
        return x

    def messages(self, batch):
        count = len(batch["nodes"])
        nodes, token = torch.arange(count), count + batch["graph_of_node"]
        source, target = batch["edges"].unbind(1)
        backwards = batch["edge_features"] * torch.tensor([1.0, -1.0, -1.0])
        to_token, from_token = (link.expand(count, WIDTH) for link in self.token_links)
        links = [self.edge_embedding(batch["edge_features"]), self.edge_embedding(backwards), to_token, from_token]
        return torch.cat(links), torch.cat([source, target, nodes, token]), torch.cat([target, source, token, nodes])


def collate(graphs):
    """Several graphs as one: nodes and edges concatenated, ends of edges counted on."""
    sizes = torch.tensor([len(graph["nodes"]) for graph in graphs])
    offsets = torch.cumsum(sizes, 0) - sizes
    return {
        "nodes": torch.cat([graph["nodes"] for graph in graphs]),
        "edges": torch.cat([graph["edges"] + offset for graph, offset in zip(graphs, offsets, strict=True)]),
        "edge_features": torch.cat([graph["edge_features"] for graph in graphs]),
        "graph": torch.stack([graph["graph"] for graph in graphs]),
        "graph_of_node": torch.repeat_interleave(torch.arange(len(graphs)), sizes),
    }


def to_tensors(observation):
    """An observation as the colony gives it, for the network."""
    graph = {name: torch.tensor(observation[name], dtype=torch.float32) for name in ("nodes", "edge_features", "graph")}
    return graph | {"edges": torch.tensor(observation["edges"], dtype=torch.int64)}


def copy_weights(network, weights):
    """Arrays in the order of `network.parameters()`."""
    with torch.no_grad():
        for parameter, values in zip(network.parameters(), weights, strict=True):
            parameter.copy_(torch.as_tensor(values).view_as(parameter))
