"""Flood fill on bits against breadth-first search."""

import numpy as np
import pytest

from hotloop.core.errors import EnvError
from hotloop.workloads.snake.board import board_of, pack, reachable, stride_of, unpack
from hotloop.workloads.snake.fill_kernels import nth_free_bit
from tests.oracles.snake_oracle import reachable as search
from tests.oracles.snake_oracle import reachable_many


def random_boards(count: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """From empty to nearly full, every other one with long walls, which make long ways round."""
    draw = np.random.default_rng(seed)
    blocked = draw.random((count, size, size)) < draw.choice([0.0, 0.1, 0.3, 0.4, 0.5, 0.8], (count, 1, 1))
    walls = draw.random((count, size, 1)) < 0.4
    gaps = draw.random((count, size, size)) < 0.15
    blocked[::2] |= walls[::2] & ~gaps[::2]
    return blocked, draw.integers(0, size, (count, 2))


def spiral(size: int) -> np.ndarray:
    """Walls that leave one winding corridor from (0, 0)."""
    blocked = np.ones((size, size), np.bool_)
    x, y, dx, dy = 0, 0, 1, 0
    blocked[y, x] = False
    for _ in range(size * size):
        two_on = (x + 2 * dx, y + 2 * dy)
        turn = not (0 <= x + dx < size and 0 <= y + dy < size)
        if not turn and 0 <= two_on[0] < size and 0 <= two_on[1] < size:
            turn = not blocked[two_on[1], two_on[0]]
        if turn:
            dx, dy = -dy, dx
            if not (0 <= x + dx < size and 0 <= y + dy < size) or not blocked[y + dy, x + dx]:
                break
        x, y = x + dx, y + dy
        blocked[y, x] = False
    return blocked


def test_a_wall_across_the_board_keeps_the_fill_on_its_side():
    blocked = np.zeros((1, 5, 5), np.bool_)
    blocked[0, 2] = True
    count, reached = reachable(blocked, np.array([[3, 0]]))
    assert count.tolist() == [10]
    np.testing.assert_array_equal(reached[0], np.arange(5)[:, None] < 2 + np.zeros((1, 5)))


def test_the_right_edge_of_a_row_is_not_beside_the_left_edge_of_the_next():
    for size in (5, 10, 11, 64):
        blocked = np.ones((1, size, size), np.bool_)
        blocked[0, 1, size - 1] = blocked[0, 2, 0] = blocked[0, 0, 0] = False
        assert reachable(blocked, np.array([[size - 1, 1]]))[0].tolist() == [1]


def test_the_cell_to_start_from_counts_even_where_it_is_blocked():
    blocked = np.ones((1, 6, 6), np.bool_)
    blocked[0, 3, 4] = False
    assert reachable(blocked, np.array([[3, 3]]))[0].tolist() == [2]


@pytest.mark.parametrize("size", [5, 6, 10, 11, 12, 31, 64])
def test_fills_equal_breadth_first_search(size):
    blocked, start = random_boards(40 if size < 20 else 6, size, size)
    blocked[-1], start[-1] = spiral(size), (0, 0)
    count, reached = reachable(blocked, start)
    for index, cell in enumerate(start):
        walls = {(int(x), int(y)) for y, x in np.argwhere(blocked[index])}
        cells = search(size, walls, (int(cell[0]), int(cell[1])))
        assert count[index] == len(cells)
        assert {(int(x), int(y)) for y, x in np.argwhere(reached[index])} == cells


def assert_equal_on(size: int, count: int, seed: int) -> None:
    blocked, start = random_boards(count, size, seed)
    counts, reached = reachable(blocked, start)
    expected = reachable_many(blocked, start)
    np.testing.assert_array_equal(reached, expected)
    np.testing.assert_array_equal(counts, expected.sum(axis=(1, 2)))


def test_fills_are_exact_on_twenty_thousand_boards():
    assert_equal_on(10, 16_000, 0)
    for size in range(5, 13):
        assert_equal_on(size, 450, size)
    for size in range(13, 65, 3):
        assert_equal_on(size, 25, size)


@pytest.mark.slow
def test_fills_are_exact_on_a_million_boards():
    for seed in range(80):
        assert_equal_on(10, 10_000, seed)
    for size in range(5, 65):
        assert_equal_on(size, 20_000 if size < 13 else 800, size)


@pytest.mark.parametrize("size", range(5, 65))
def test_packing_a_board_and_unpacking_it_gives_it_back(size):
    cells = np.random.default_rng(size).random((3, size, size)) < 0.5
    words = pack(cells)
    np.testing.assert_array_equal(unpack(words, size), cells)
    assert np.bitwise_count(words).sum() == cells.sum()
    assert np.bitwise_count(board_of(size)).sum() == size * size


@pytest.mark.parametrize("size", [5, 8, 10, 11, 40, 64])
def test_the_nth_free_bit_counts_free_cells_in_reading_order(size):
    blocked = np.random.default_rng(size).random((1, size, size)) < 0.7
    board, words = board_of(size), pack(blocked)
    bits = [nth_free_bit(board, words, 0, nth) for nth in range(int((~blocked).sum()))]
    assert bits == [int(y) * stride_of(size) + int(x) for y, x in np.argwhere(~blocked[0])]


@pytest.mark.parametrize(
    ("shape", "start"), [((1, 5, 6), [[0, 0]]), ((1, 5, 5), [[5, 0]]), ((2, 5, 5), [[0, 0]]), ((1, 65, 65), [[0, 0]])]
)
def test_boards_that_cannot_be_filled_are_refused(shape, start):
    with pytest.raises(EnvError):
        reachable(np.zeros(shape, np.bool_), np.array(start))
