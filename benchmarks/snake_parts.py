"""Cases: flood fill, and storing the transitions of many games.

Flood fill: which cells can be reached. Bits of machine words against breadth-first search over sets.

Compared cell by cell on random boards from empty to nearly full, half of them with long walls. Timed: one call fills
from beside the head of many snakes of all lengths, boards given as each program keeps them.

Storing a transition of each of 256 games: one at a time off the device, against one call.

`one-by-one`: `.cpu().numpy()` and `.item()` for every game. `batched`: each tensor off the device once, then a loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

import hotloop
from benchmarks.replay import all_rows
from benchmarks.snake_step import carefully, make_ours
from benchmarks.witnesses.snake_dqn import ReplayBuffer, push_batch, push_one_by_one
from benchmarks.witnesses.snake_env import MOVES, SnakeGames
from hotloop.core.types import Array, ArraySpec, EnvStep
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.proof.case import Call, Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare, worst
from hotloop.replay.buffer import ReplayMemory as Replay
from hotloop.replay.n_step import Returns
from hotloop.workloads.snake.board import board_of, pack, reachable, stride_of
from hotloop.workloads.snake.fill_kernels import fill_many

Cell = tuple[int, int]


BOARDS = {"10x10": 20_000, "20x20": 2_000, "64x64": 200, "10x10-million": 1_000_000}
"""Name of a size -> boards compared."""
TIMED_CELLS = 25_600
"""Of all boards of one call: 256 boards of 10 x 10."""
CHUNK = 5_000
SEED = 13


@hotloop.cases("which cells of a board can be reached")
def flood_fill_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            family="flood-fill",
            size=name,
            build=partial(_build, int(name.split("x")[0]), max(10, count // 1_000) if small else count),
            quick=name == "10x10",
        )
        for name, count in BOARDS.items()
    ]


def _build(size: int, num_checked: int) -> Programs:
    plain, fast = timed_calls(size)

    def growth() -> TwoSizes:
        """Per cell of the board."""
        (_, few), (_, many) = timed_calls(10, num_boards=16), timed_calls(64, num_boards=16)
        return TwoSizes(few, many, 64**2 / 10**2, "10x10", "64x64")

    return Programs(
        plain=plain,
        fast=fast,
        compare=lambda counts, cells: compare([("cells counted", counts, [len(found) for found in cells])]),
        further=partial(check, size, num_checked),
        growth=growth if size == 10 else None,
    )


def timed_calls(size: int, num_boards: int = 0) -> tuple[Call, Call]:
    count, rng = num_boards or TIMED_CELLS // size**2, np.random.default_rng(SEED)
    snakes = [grow_snake(size, rng) for _ in range(count)]
    games, boards = SnakeGames(1, lambda game, count: 0, grid_size=size), [(set(body), at) for body, at in snakes]

    def plain() -> list[set[Cell]]:
        return [games.flood_fill(blocked, start) for blocked, start in boards]

    occupied, start = packed_boards(size, snakes)
    board, stride, reached = board_of(size), stride_of(size), np.empty_like(occupied)
    counts = np.empty(count, np.int64)

    def fast() -> Array:
        fill_many(board, occupied, stride, start, reached, counts)
        return counts

    return plain, fast


def packed_boards(size: int, snakes: list[tuple[list[Cell], Cell]]) -> tuple[Array, Array]:
    """As the env holds them: the bodies as bits, the cells to start from as numbers of bits."""
    cells = np.zeros((len(snakes), size, size), np.bool_)
    for index, (body, _) in enumerate(snakes):
        for x, y in body:
            cells[index, y, x] = True
    return pack(cells), np.array([y * stride_of(size) + x for _, (x, y) in snakes], np.int64)


def grow_snake(size: int, rng: np.random.Generator) -> tuple[list[Cell], Cell]:
    """A body that does not cross itself, of up to half the board, and the free cell where its walk goes on."""
    walk = [(size // 2, size // 2)]
    while len(walk) < size * size // 2 and (ways := list(_free_beside(size, walk))):
        walk.append(ways[rng.integers(len(ways))])
    length = int(rng.integers(3, len(walk)))  # any of its moments: most walks end where there is no way out
    return walk[:length], walk[length]


def _free_beside(size: int, body: list[Cell]) -> Iterator[Cell]:
    x, y = body[-1]
    for dx, dy in MOVES:
        cell = (x + dx, y + dy)
        if 0 <= cell[0] < size and 0 <= cell[1] < size and cell not in body:
            yield cell


def check(size: int, num_boards: int) -> Equality:
    rng = np.random.default_rng(SEED)
    chunks = [min(CHUNK, num_boards - first) for first in range(0, num_boards, CHUNK)]
    return worst(_check_boards(*random_boards(count, size, rng)) for count in chunks)


def random_boards(count: int, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    blocked = rng.random((count, size, size)) < rng.choice([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.8], (count, 1, 1))
    walls, gaps = rng.random((count, size, 1)) < 0.4, rng.random((count, size, size)) < 0.15
    blocked[::2] |= walls[::2] & ~gaps[::2]
    return blocked, rng.integers(0, size, (count, 2))


def _check_boards(blocked: Array, start: Array) -> Equality:
    size = blocked.shape[1]
    games, expected = SnakeGames(1, lambda game, count: 0, grid_size=size), np.zeros_like(blocked)
    counts = np.zeros(len(blocked), np.int64)
    for index, (x, y) in enumerate(start.tolist()):
        down, right = np.nonzero(blocked[index])
        visited = games.flood_fill(set(zip(right.tolist(), down.tolist(), strict=True)), (x, y))
        columns, rows = zip(*visited, strict=True)
        expected[index, rows, columns] = True
        counts[index] = len(visited)
    our_counts, reached = reachable(blocked, start)
    return compare([("cells counted", our_counts, counts), ("cells reached", reached, expected)])


FORMS = {"one-by-one": push_one_by_one, "batched": push_batch}
SIZES = {"256": (256, "flood-fill"), "256-basic": (256, "basic")}
SMALL = {"4": (4, "flood-fill")}
CAPACITY, SMALL_CAPACITY = 100_000, 1_000
GAMMA = 0.99


Stored = tuple[Array, Array, EnvStep]


@hotloop.cases("storing the transitions of 256 games one by one, or in one call")
def replay_push_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            family="replay-push",
            variant=form,
            size=name,
            build=partial(_build_push, form, num_games, mode, SMALL_CAPACITY if small else CAPACITY),
            quick=(form, name) == ("one-by-one", "256"),
        )
        for form in FORMS
        for name, (num_games, mode) in (SMALL if small else SIZES).items()
    ]


def _replay(num_games: int, num_features: int, capacity: int) -> Replay:
    returns = Returns(1, GAMMA, timeouts_are_terminal=True)
    return Replay(ReplaySettings(buffer_size=capacity), ArraySpec((num_features,)), num_games, returns, seed=5)


def _play(num_games: int, mode: str, num_steps: int) -> list[Stored]:
    """What `Replay.add` takes, from games that end now and then, by death and by time-out."""
    guide, env = make_ours("flood-fill", num_games, max_steps=25), make_ours(mode, num_games, max_steps=25)
    rng, seen, obs, stored = np.random.default_rng(0), guide.reset()[0], env.reset()[0], []
    for _ in range(num_steps):
        action = np.where(rng.random(num_games) < 0.9, carefully(seen, rng), rng.integers(3, size=num_games))
        seen, step = guide.step(action).obs, env.step(action)
        stored.append((obs, action, step))
        obs = step.obs
    return stored


def _tensors(stored: Stored) -> tuple[torch.Tensor, ...]:
    """The same as the plain program has it."""
    obs, action, step = stored
    arrays = (obs, action, step.reward, step.final_obs, step.terminated | step.truncated)
    return tuple(torch.tensor(array) for array in arrays)


def _build_push(form: str, num_games: int, mode: str, capacity: int) -> Programs:
    stored = _play(num_games, mode, 20)
    features = stored[-1][0].shape[1]
    replay, buffer = _replay(num_games, features, capacity), ReplayBuffer(capacity)

    def growth() -> TwoSizes:
        """Into a replay a hundred times as large."""
        few, many = (partial(_replay(num_games, features, rows).add, *stored[-1]) for rows in (1_000, CAPACITY))
        return TwoSizes(few, many, 1.0, "1,000 rows", f"{CAPACITY:,}")

    return Programs(
        plain=partial(FORMS[form], buffer, *_tensors(stored[-1])),
        fast=partial(replay.add, *stored[-1]),
        compare=lambda fast, plain: compare_rows(replay, buffer),
        further=partial(_check, form, num_games, mode),
        growth=growth,
    )


def _check(form: str, num_games: int, mode: str) -> Equality:
    """A ring and a deque that have both begun to forget hold the same rows."""
    stored, capacity = _play(num_games, mode, 40), 25 * num_games + 1
    replay, buffer = _replay(num_games, stored[0][0].shape[1], capacity), ReplayBuffer(capacity)
    for one in stored:
        replay.add(*one)
        FORMS[form](buffer, *_tensors(one))
    return compare_rows(replay, buffer)


def compare_rows(replay: Replay, buffer: ReplayBuffer) -> Equality:
    """All of them, from the oldest to the newest."""
    batch = all_rows(replay)
    states, actions, rewards, next_states, dones = map(np.array, zip(*buffer.buffer, strict=True))
    return compare(
        [
            ("obs", batch.obs[0], states),  # type: ignore[index]
            ("action", batch.action[0], actions),
            ("reward", batch.reward[0], rewards.astype(np.float32)),
            ("next_obs", batch.next_obs[0], next_states),  # type: ignore[index]
            ("discount", batch.discount[0], np.float32(GAMMA) * (1 - dones.astype(np.float32))),
        ]
    )
