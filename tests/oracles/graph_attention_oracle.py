"""The network over graphs the plain way: one graph at a time, one node at a time, float64, dictionaries of rows."""

from __future__ import annotations

import math

import numpy as np


def outcome_of_one_graph(weights, heads, groups, nodes, edges, edge_features, graph):
    """mean, log_std, value, node logits (None without a node head) of one graph; `weights` by name, as numpy."""
    w = Weights(weights)
    rows = {i: w.embed("node_embedding", features) for i, features in enumerate(nodes)}
    rows["token"] = w.embed("token_embedding", graph)
    arriving = arriving_messages(w, len(nodes), edges, edge_features)
    for layer in range(1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))):
        rows = one_layer(w, f"layers.{layer}.", heads, rows, arriving)
    z = {i: simplices(w.linear("simplices", w.norm("final_norm", row)), groups) for i, row in rows.items()}
    token, zeros = z.pop("token"), np.zeros(len(rows["token"]))
    pooled = np.concatenate([sum(z.values()) / len(z) if z else zeros, token])
    mean, log_std = np.split(w.head("actor", pooled), 2)
    logits = None
    if "node_head.weight" in weights:
        logits = [w.linear("node_head", np.concatenate([row, token])) for row in z.values()]
    return mean, np.clip(log_std, -5.0, 1.0), w.head("critic", pooled), logits


def arriving_messages(w, num_nodes, edges, edge_features):
    """target -> list of (source, embedding of the link)."""
    arriving = {row: [] for row in [*range(num_nodes), "token"]}
    for (u, v), features in zip(edges, edge_features, strict=True):
        turned = [features[0], *(-number for number in features[1:])]
        arriving[int(v)].append((int(u), w.embed("edge_embedding", features)))
        arriving[int(u)].append((int(v), w.embed("edge_embedding", turned)))
    for node in range(num_nodes):
        arriving["token"].append((node, w.values["token_links"][0]))
        arriving[node].append(("token", w.values["token_links"][1]))
    return arriving


def one_layer(w, name, heads, rows, arriving):
    parts = {
        i: np.split(w.linear(name + "queries_keys_values", w.norm(name + "attention_norm", row)), 3)
        for i, row in rows.items()
    }
    after = {}
    for i, row in rows.items():
        messages = [
            (parts[j][1] + e, parts[j][2] + e)
            for j, e in ((j, w.values[name + "links.weight"] @ a) for j, a in arriving[i])
        ]
        x = row + w.linear(name + "attention_out", attention(parts[i][0], messages, heads))
        hidden = gelu(w.linear(name + "forward_in", w.norm(name + "forward_norm", x)))
        after[i] = x + w.linear(name + "forward_out", hidden)
    return after


def attention(query, messages, heads):
    """All heads of one row, from (key, value) of each message that arrives."""
    width = len(query) // heads
    result = np.zeros(len(query))
    for h in range(heads):
        columns = slice(h * width, (h + 1) * width)
        scores = [query[columns] @ key[columns] / math.sqrt(width) for key, _ in messages]
        for p, (_, value) in zip(softmax(scores), messages, strict=True):
            result[columns] += p * value[columns]
    return result


def softmax(scores):
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def simplices(row, groups):
    return np.concatenate([softmax(list(group)) for group in np.split(row, groups)])


def gelu(row):
    return np.array([x * 0.5 * (1.0 + math.erf(x / math.sqrt(2.0))) for x in row])


class Weights:
    """A state dict with the few operations that it is used in."""

    def __init__(self, values):
        self.values = {name: np.asarray(value, np.float64) for name, value in values.items()}

    def linear(self, name, row):
        return self.values[name + ".weight"] @ np.asarray(row, np.float64) + self.values[name + ".bias"]

    def norm(self, name, row):
        scaled = (row - row.mean()) / math.sqrt(row.var() + 1e-5)
        return scaled * self.values[name + ".weight"] + self.values[name + ".bias"]

    def embed(self, name, features):
        return self.norm(name + ".2", gelu(self.linear(name + ".0", features)))

    def head(self, name, row):
        return self.linear(name + ".2", gelu(self.linear(name + ".0", row)))
