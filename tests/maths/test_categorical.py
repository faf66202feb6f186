"""C51's projection: by eye, against the paper's floor-and-ceiling loop, and what it must keep."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import tensor
from torch.testing import assert_close

from hotloop.maths.td import cross_entropy, expected_q, make_support, project
from tests.oracles import categorical_oracle as oracle

FIVE = make_support(0.0, 4.0, 5)  # 0 1 2 3 4


def one_hot(atom: int) -> torch.Tensor:
    return torch.eye(5)[atom][None]


def projected(reward: float, discount: float, probability: torch.Tensor) -> list[float]:
    return project(tensor([reward]), tensor([discount]), probability, FIVE)[0].tolist()


def test_the_support_is_equally_spaced_and_includes_both_ends():
    assert make_support(-1.0, 1.0, 5).tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]


def test_an_exact_hit_keeps_its_mass_in_one_atom():
    assert projected(1.0, 1.0, one_hot(2)) == [0, 0, 0, 1, 0]
    assert projected(0.0, 1.0, one_hot(0)) == [1, 0, 0, 0, 0]
    assert projected(0.0, 1.0, one_hot(4)) == [0, 0, 0, 0, 1]


def test_mass_between_two_atoms_is_split_by_nearness():
    assert projected(0.25, 1.0, one_hot(2)) == [0, 0, 0.75, 0.25, 0]
    assert projected(1.0, 0.5, one_hot(3)) == [0, 0, 0.5, 0.5, 0]  # 1 + 0.5*3 = 2.5


def test_mass_beyond_the_ends_piles_up_there():
    assert projected(9.0, 1.0, one_hot(3)) == [0, 0, 0, 0, 1]
    assert projected(-9.0, 1.0, one_hot(3)) == [1, 0, 0, 0, 0]


def test_a_terminal_row_puts_everything_on_its_reward():
    spread = tensor([[0.1, 0.2, 0.3, 0.2, 0.2]])
    assert projected(2.0, 0.0, spread) == pytest.approx([0, 0, 1, 0, 0])
    assert projected(1.5, 0.0, spread) == pytest.approx([0, 0.5, 0.5, 0, 0])


def test_expected_value_by_hand():
    logits = tensor([[[0.0, 0.0, 0.0, 0.0, 0.0], [-100.0, -100.0, 0.0, -100.0, 0.0]]])
    assert_close(expected_q(logits, FIVE), tensor([[2.0, 3.0]]))  # the mean of 0..4; the mean of 2 and 4


def test_cross_entropy_by_hand():
    logits = tensor([[0.0, 0.0], [0.0, 1.0986123]])  # probabilities 1/2 1/2, and 1/4 3/4
    target = tensor([[1.0, 0.0], [0.5, 0.5]])
    assert cross_entropy(target, logits).tolist() == pytest.approx([0.693147, 0.836988], rel=1e-5)


problems = st.tuples(st.integers(2, 51), st.floats(-20, 10, width=32), st.floats(0.5, 50, width=32)).flatmap(
    lambda shape: st.tuples(
        st.just(shape),
        st.lists(
            st.tuples(
                st.floats(-60, 60, width=32),
                st.sampled_from([0.0, 0.5, 0.99, 1.0]) | st.floats(0, 1, width=32),
                st.lists(st.floats(0, 1, width=32), min_size=shape[0], max_size=shape[0]),
            ),
            min_size=1,
            max_size=4,
        ),
    )
)


@given(problems)
def test_the_projection_equals_the_papers_loop_and_keeps_all_mass(problem):
    (atoms, v_min, width), rows = problem
    reward, discount, weights = (tensor(column) for column in zip(*rows, strict=True))
    probability = (weights + 1e-3) / (weights + 1e-3).sum(-1, keepdim=True)
    support = make_support(v_min, v_min + width, atoms)
    ours = project(reward, discount, probability, support)
    for row, (r, d, _) in enumerate(rows):
        slow = oracle.project(r, d, probability[row].tolist(), v_min, v_min + width, atoms)
        assert ours[row].tolist() == pytest.approx(slow, abs=3e-4)  # float32 positions over up to 51 atoms
    assert (ours >= 0).all()
    assert_close(ours.sum(-1), torch.ones(len(rows)), rtol=0, atol=3e-4)


@given(
    st.floats(-1, 1, width=32),
    st.floats(0, 0.75, width=32),
    st.lists(st.floats(0, 1, width=32), min_size=5, max_size=5),
)
def test_inside_the_support_the_mean_moves_as_a_return_does(reward, discount, weights):
    """E[projection] = r + discount * E[Z] as long as nothing is cut off at the ends."""
    support = make_support(-4.0, 4.0, 5)
    probability = (tensor([weights]) + 0.01) / (tensor([weights]) + 0.01).sum()
    moved = project(tensor([reward]), tensor([discount]), probability, support)
    assert (moved @ support).item() == pytest.approx(reward + discount * (probability @ support).item(), abs=1e-4)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 1)), min_size=2, max_size=8))
def test_cross_entropy_and_expectation_equal_plain_loops(pairs):
    logits, target = ([float(value) for value in column] for column in zip(*pairs, strict=True))
    ours = cross_entropy(tensor([target], dtype=torch.float64), tensor([logits], dtype=torch.float64))
    assert ours.item() == pytest.approx(oracle.cross_entropy(target, logits), rel=1e-9, abs=1e-12)
    probability = tensor(logits).softmax(-1)
    q = expected_q(tensor([[logits]]), make_support(-1.0, 3.0, len(logits)))
    assert q.item() == pytest.approx(oracle.expected(probability.tolist(), -1.0, 3.0), abs=1e-5)
