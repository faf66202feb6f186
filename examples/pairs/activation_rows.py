"""A network wired as a graph, its activations as rows of one tensor: the same numbers, and no gradient.

    hotloop prove examples/pairs/activation_rows.py

Writing each node's row into one tensor, in place, leaves the values as they were. But the rows that a node reads are
views of that tensor, and the writes that follow change what backward needs: PyTorch refuses. A list of rows is sound.
"""

import torch

import hotloop

# three inputs, two hidden nodes, one output: node -> the nodes that it reads
READS = {3: (0, 1), 4: (1, 2, 3), 5: (3, 4)}
EDGES = {(source, node): place for place, (source, node) in enumerate((s, n) for n, own in READS.items() for s in own)}


def by_dict(x, weight):
    """One entry for each node in a dict."""
    value = {node: x[:, node] for node in range(3)}
    for node, sources in READS.items():
        value[node] = torch.tanh(sum(weight[EDGES[source, node]] * value[source] for source in sources))
    return value[5]


def make(size):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(size, 3, generator=generator), torch.randn(len(EDGES), generator=generator)


@hotloop.pair(by_dict, make, name="rows written in place")
def in_place(x, weight):
    rows = torch.zeros(6, len(x))
    rows[:3] = x.T
    for node, sources in READS.items():
        rows[node] = torch.tanh(sum(weight[EDGES[source, node]] * rows[source] for source in sources))
    return rows[5]


@hotloop.pair(by_dict, make, name="rows in a list")
def in_list(x, weight):
    rows = list(x.T)
    for node, sources in READS.items():
        rows.append(torch.tanh(sum(weight[EDGES[source, node]] * rows[source] for source in sources)))
    return rows[5]
