"""Attention along messages: by eye, against one row at a time, and machine code against torch operations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, tensor
from torch.testing import assert_close

from hotloop.core.graphs import Graphs
from hotloop.nets.graphs.attention import Messages, attend, to_tensors
from tests.oracles.graph_attention_oracle import attention

BOTH = pytest.mark.parametrize("fused", [False, True])


def graphs_of(*parts: tuple[int, list[tuple[int, int]]]) -> Graphs:
    """Graphs by their number of nodes and their edges; an edge's features are its number + (1, 2, 3)."""
    edges = np.array([edge for _, some in parts for edge in some], np.int32).reshape(-1, 2)
    num_nodes, num_edges = [nodes for nodes, _ in parts], [len(some) for _, some in parts]
    return Graphs(
        nodes=np.zeros((sum(num_nodes), 2), np.float32),
        edges=edges,
        edge_features=np.arange(len(edges), dtype=np.float32)[:, None] + np.array([1, 2, 3], np.float32),
        graph=np.zeros((len(parts), 4), np.float32),
        node_offsets=np.cumsum([0, *num_nodes]),
        edge_offsets=np.cumsum([0, *num_edges]),
    )


SOME = graphs_of((3, [(0, 1), (0, 2)]), (0, []), (1, []), (2, [(1, 0)]))


def messages_of(graphs: Graphs) -> set[tuple[int, int, int]]:
    messages = to_tensors(graphs).messages
    return set(zip(messages.sources.tolist(), messages.targets.tolist(), messages.links.tolist(), strict=True))


def random_operands(graphs: Graphs, heads: int, width: int, dtype=torch.float32) -> tuple[Tensor, Tensor, Messages]:
    torch.manual_seed(0)
    messages, depth = to_tensors(graphs).messages, heads * width
    inputs = torch.randn(len(messages.starts) - 1, 3 * depth, dtype=dtype)
    return inputs, torch.randn(2 * len(graphs.edges) + 2, depth, dtype=dtype), messages


def random_graphs(seed: int, count: int, most_nodes: int) -> Graphs:
    random = np.random.default_rng(seed)
    parts: list[tuple[int, list[tuple[int, int]]]] = []
    for _ in range(count):
        nodes = int(random.integers(0, most_nodes + 1))
        pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v and random.random() < 2.0 / nodes]
        parts.append((nodes, pairs))
    return graphs_of(*parts)


def test_an_edge_sends_both_ways_and_the_token_talks_to_every_node():
    assert messages_of(graphs_of((2, [(0, 1)]))) == {
        (0, 1, 0),  # along the edge
        (1, 0, 1),  # against it
        (0, 2, 2),  # row 2 is the token
        (1, 2, 2),
        (2, 0, 3),
        (2, 1, 3),
    }


def test_the_messages_of_a_batch_are_those_of_its_graphs_moved_to_their_rows():
    # rows 0-2, none, 3, 4-5 are nodes and 6, 7, 8, 9 tokens; links are edges 0-2, turned round 3-5, tokens' 6 and 7
    assert messages_of(SOME) == {
        *[(0, 1, 0), (1, 0, 3), (0, 2, 1), (2, 0, 4), (5, 4, 2), (4, 5, 5)],
        *[(node, token, 6) for node, token in [(0, 6), (1, 6), (2, 6), (3, 8), (4, 9), (5, 9)]],
        *[(token, node, 7) for node, token in [(0, 6), (1, 6), (2, 6), (3, 8), (4, 9), (5, 9)]],
    }


def test_messages_lie_sorted_by_target_and_starts_say_where():
    batch = to_tensors(SOME)
    targets, starts = batch.messages.targets.tolist(), batch.messages.starts.tolist()
    assert starts == [0, 3, 5, 7, 8, 10, 12, 15, 15, 16, 18]
    assert targets == [row for row in range(10) for _ in range(starts[row + 1] - starts[row])]
    assert batch.node_graph.tolist() == [0, 0, 0, 2, 3, 3]


def test_an_edge_turned_round_keeps_its_length_and_changes_its_direction():
    batch = to_tensors(graphs_of((2, [(0, 1), (1, 0)])))
    assert batch.edges.tolist() == [[1, 2, 3], [2, 3, 4], [1, -2, -3], [2, -3, -4]]


def by_hand() -> Messages:
    """Rows 1 and 2 talk to row 0 over links 0 and 1; nobody talks to rows 1 and 2."""
    return Messages(tensor([1, 2]), tensor([0, 0]), tensor([0, 1]), tensor([0, 2, 2, 2]))


@BOTH
def test_two_messages_by_eye(fused):
    # one head of one column, so that scores are not scaled: query 1, key + link log 3 and 0, value + link 8 and 4
    inputs = tensor([[1.0, 0.0, 0.0], [0.0, math.log(3.0) - 2.0, 6.0], [0.0, -1.0, 3.0]])
    out = attend(inputs, tensor([[2.0], [1.0]]), by_hand(), 1, fused)
    assert_close(out, tensor([[0.75 * 8.0 + 0.25 * 4.0], [0.0], [0.0]]))


@BOTH
def test_scores_are_divided_by_the_root_of_a_heads_width_and_heads_are_apart(fused):
    # two heads of four columns; the first head scores 4 * (log 3) / 2 / sqrt 4 and 0, the second 0 and 0
    inputs = torch.zeros(3, 3, 2, 4)
    inputs[0, 0] = 1.0
    inputs[1, 1, 0] = 0.5 * math.log(3.0)
    inputs[1, 2], inputs[2, 2] = 8.0, 4.0
    out = attend(inputs.flatten(1), torch.zeros(2, 8), by_hand(), 2, fused)
    assert_close(out[0], tensor([7.0] * 4 + [6.0] * 4))


@BOTH
def test_large_scores_do_not_overflow(fused):
    inputs = tensor([[100.0, 0.0, 0.0], [0.0, 100.0, 6.0], [0.0, -100.0, 3.0]])
    assert attend(inputs, torch.zeros(2, 1), by_hand(), 1, fused)[0].item() == 6.0


@BOTH
@pytest.mark.parametrize(("heads", "width"), [(4, 32), (1, 5), (3, 16)])
def test_every_row_is_as_one_row_at_a_time(fused, heads, width):
    inputs, links, messages = random_operands(random_graphs(1, 6, 5), heads, width)
    out = attend(inputs, links, messages, heads, fused)
    parts = inputs.double().unflatten(1, (3, -1)).numpy()
    for row in range(len(inputs)):
        arriving = range(int(messages.starts[row]), int(messages.starts[row + 1]))
        pairs = [(parts[messages.sources[m]], links[messages.links[m]].double().numpy()) for m in arriving]
        expected = attention(parts[row, 0], [(part[1] + e, part[2] + e) for part, e in pairs], heads)
        assert_close(out[row].double(), torch.from_numpy(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("heads", "width"), [(4, 32), (1, 5), (2, 17)])
def test_machine_code_has_the_values_and_gradients_of_torch_operations(heads, width):
    inputs, links, messages = random_operands(random_graphs(2, 20, 12), heads, width)
    answers = []
    for fused in (False, True):
        leaves = [inputs.clone().requires_grad_(), links.clone().requires_grad_()]
        out = attend(*leaves, messages, heads, fused)
        torch.manual_seed(1)
        answers.append([out.detach(), *torch.autograd.grad((out * torch.randn_like(out)).sum(), leaves)])
    for plain, fused_ in zip(*answers, strict=True):
        assert_close(fused_, plain, rtol=1e-4, atol=1e-5)


def test_the_gradients_of_torch_operations_are_those_of_differences():
    inputs, links, messages = random_operands(SOME, 2, 3, torch.float64)
    leaves = (inputs.requires_grad_(), links.requires_grad_())
    assert torch.autograd.gradcheck(lambda *operands: attend(*operands, messages, 2), leaves)


def test_without_gradients_machine_code_gives_the_same_bits():
    inputs, links, messages = random_operands(SOME, 4, 32)
    with torch.no_grad():
        acting = attend(inputs, links, messages, 4)
    assert torch.equal(acting, attend(inputs.requires_grad_(), links, messages, 4))


def test_machine_code_has_no_second_derivative_and_says_so():
    inputs, links, messages = random_operands(SOME, 4, 8)
    (gradient,) = torch.autograd.grad(
        attend(inputs.requires_grad_(), links, messages, 4).square().sum(), inputs, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_half_precision_is_attended_to_in_single_and_handed_back_as_it_came():
    inputs, links, messages = random_operands(SOME, 4, 8, torch.bfloat16)
    out = attend(inputs, links, messages, 4)
    assert out.dtype == torch.bfloat16
    assert_close(out, attend(inputs.float(), links.float(), messages, 4).bfloat16())


@BOTH
def test_a_batch_of_empty_graphs_has_tokens_that_hear_nothing(fused):
    inputs, links, messages = random_operands(graphs_of((0, []), (0, [])), 2, 4)
    leaves = [inputs.requires_grad_(), links.requires_grad_()]
    out = attend(*leaves, messages, 2, fused)
    assert torch.equal(out, torch.zeros(2, 8))
    out.sum().backward()
    assert not leaves[0].grad.any()
