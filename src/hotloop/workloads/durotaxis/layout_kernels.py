"""What the kernels are handed: a record of what a colony has one of, its nodes in arrays, its edges as bits.

Nodes lie in order of birth. There is room for twice as many as a colony may have, since the step that makes it too
large is still shown. A colony of n nodes uses n bits of each of n rows of `links`; whatever lies beyond is left as it
was, so that a step costs what its nodes cost and not what there is room for. Up to a whole block behind the last node
x is infinite: nobody there lies left of anybody.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hotloop.core.types import Array
from hotloop.workloads.durotaxis.settings import MOST_NODES, DurotaxisSettings

NUM_NUMBERS = 5
RATIO, GAMMA, ALPHA, NOISE, THETA = range(NUM_NUMBERS)
LOW = np.array([0.0, 0.5, 0.5, 0.05, -30.0])
HIGH = np.array([1.0, 15.0, 4.0, 0.5, 30.0])  # of the ratio: see `Rules.max_delete_ratio`
FIRST_STAGE = np.array([0.0, 5.0, 2.0, 0.5, 0.0])  # what the curriculum begins with; its ratio is the policy's

RUNS, TOO_MANY, EMPTY, OUTSIDE, DRIFTED, SUCCEEDED = range(6)  # how an episode ended
LINEAR, EXPONENTIAL, RANDOM = range(3)
CENTROID_DISTANCE_ONLY, FULL, SIMPLE_DELETE_ONLY = range(3)
SUBSTRATES = ("linear", "exponential", "random")
REWARD_MODES = ("centroid_distance_only", "full", "simple_delete_only")

X, Y, INTENSITY, SEEN_INTENSITY, NODE_REWARD = range(5)  # rows of `Colony.places`
AGE, HULL, INS, OUTS = range(4)  # rows of `Colony.counts`
WORD = 64
BLOCK = 16  # loops over all nodes go on to a multiple of it, where they need no remainder

RECORD = np.dtype(
    [
        ("generator", np.uint64, (1,)),
        ("num_nodes", np.int64),
        ("num_edges", np.int64),
        ("steps", np.int64),  # of the episode
        ("total_steps", np.int64),  # of all episodes
        ("drift", np.int64),  # steps in a row that the centroid moved left
        ("milestones", np.int64),  # passed
        ("recoveries", np.int64),
        ("outcome", np.int64),
        ("over", np.int64),  # 1 terminated, 2 truncated, 3 both; stays only where finished episodes are held
        ("substrate", np.int64),
        ("m", np.float64),
        ("b", np.float64),
        ("centroid", np.float64, (2,)),  # the last one there was
        ("hull_area", np.float64),
        ("action", np.float64, (NUM_NUMBERS,)),  # the last one, as carried out
    ],
    align=True,
)

RULES = np.dtype(
    [
        ("width", np.float64),
        ("height", np.float64),
        ("margin_x", np.float64),
        ("margin_y", np.float64),
        ("flatness", np.float64),  # a triangle of twice this area or less counts as a line
        ("m", np.float64),
        ("b", np.float64),
        ("max_delete_ratio", np.float64),
        ("substrate", np.int64),
        ("reward", np.int64),
        ("start_nodes", np.int64),
        ("max_nodes", np.int64),
        ("max_steps", np.int64),
        ("curriculum_steps", np.int64),
        ("per_node", np.int64),
        ("recovery", np.int64),
    ],
    align=True,
)
Rules = Any
"""A record of `RULES`, in kernels."""


class Colony(NamedTuple):
    """One of them; C is the room for nodes, W the words of a row."""

    record: Any  # of RECORD
    places: Array  # [5, C] float64; X is infinite behind the last node
    counts: Array  # [4, C] int32
    links: Array  # [C, W] uint64: bit j of row i is the edge from i to j


class Scratch(NamedTuple):
    """Of all colonies in turn."""

    chosen: Array  # [C] int64, 1 where a node is to be deleted
    order: Array  # [C] int64
    moved: Array  # [C] int64, where a node goes
    stack: Array  # [2 * C] int64
    sums: Array  # [C] float64
    words: Array  # [3, W] uint64


def empty_colonies(settings: DurotaxisSettings, num_envs: int, seeds: Array) -> tuple[Array, ...]:
    """The arrays of `Colony`, each with a leading [N]."""
    room, words = _room(settings)
    records = np.zeros(num_envs, RECORD)
    records["generator"][:, 0] = seeds
    return (
        records,
        np.zeros((num_envs, NODE_REWARD + 1, room)),
        np.zeros((num_envs, OUTS + 1, room), np.int32),
        np.zeros((num_envs, room, words), np.uint64),
    )


def empty_scratch(settings: DurotaxisSettings) -> tuple[Array, ...]:
    room, words = _room(settings)
    chosen, order, moved = np.zeros((3, room), np.int64)
    return tuple(
        Scratch(chosen, order, moved, np.zeros(2 * room, np.int64), np.zeros(room), np.zeros((3, words), np.uint64))
    )


def rules_of(settings: DurotaxisSettings, max_episode_steps: int) -> Array:
    """[1] of RULES."""
    width, height = settings.width, settings.height
    rules = np.zeros(1, RULES)
    for name in ("width", "height", "max_delete_ratio", "start_nodes", "max_nodes", "curriculum_steps", "recovery"):
        rules[name] = getattr(settings, name)
    rules["margin_x"], rules["margin_y"] = max(2.0, 0.01 * width), max(2.0, 0.01 * height)
    rules["flatness"] = 1e-12 * width * height
    rules["m"], rules["b"] = settings.slope_and_start
    rules["substrate"], rules["reward"] = SUBSTRATES.index(settings.substrate), REWARD_MODES.index(settings.reward)
    rules["max_steps"] = max_episode_steps or settings.max_steps or 2**62
    rules["per_node"] = settings.action == "per_node"
    return rules


def _room(settings: DurotaxisSettings) -> tuple[int, int]:
    room = 2 * settings.max_nodes + BLOCK - 1
    room -= room % BLOCK
    return room, (room + WORD - 1) // WORD


SCALED = (np.log1p(np.arange(4 * MOST_NODES + 1)) / 6.0).astype(np.float32)  # degrees as they are seen
