"""Shortest paths between all pairs of data centres: once an episode, against listing every path there is.

Compared path by path in random networks, half of which have so few different lengths that many paths are equally long.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.sfc.layout_kernels import empty_worlds
from hotloop.envs.sfc.network_kernels import find_all_paths
from hotloop.prove.case import Built, Case, Growth
from hotloop.prove.equivalence import Equality, compare, worst
from hotloop.prove.reference.sfc_env import SfcEnv

CENTRES = (2, 4, 6, 8)
CHECKED = {2: 2_000, 4: 500, 6: 30, 8: 2}
"""Data centres -> networks compared."""
SEED = 5


def sfc_paths_cases(small: bool) -> list[Case]:
    return [
        Case(
            family="sfc-paths",
            size=str(centres),
            build=partial(_build, centres, 4 if small else CHECKED[centres]),
            is_default=centres == 8,
        )
        for centres in ((2, 5) if small else CENTRES)
    ]


def _build(centres: int, num_checked: int) -> Built:
    worlds = networks(centres, 1, np.random.default_rng(SEED))
    plain = plain_network(worlds[0])
    pairs = list(itertools.permutations(range(centres), 2))

    def growth() -> Growth:
        few, many = (networks(count, 64, np.random.default_rng(SEED)) for count in (4, 16))
        pairs_of = {count: count * (count - 1) for count in (4, 16)}
        units = pairs_of[16] / pairs_of[4]
        return Growth(partial(find_all_paths, few), partial(find_all_paths, many), units, "4 centres", "16, per pair")

    return Built(
        check=partial(_check, centres, num_checked),
        reference=lambda: [plain.shortest_path(*pair) for pair in pairs],
        fast=partial(find_all_paths, worlds),
        growth=growth if centres == CENTRES[-1] else None,
    )


def networks(centres: int, count: int, rng: np.random.Generator) -> Array:
    """Every other one with lengths of 100, 200 or 300 km, in which ties abound."""
    worlds = empty_worlds(count, np.zeros(count, np.uint64))
    worlds["num_centres"] = centres
    for index in range(count):
        for one, other in itertools.combinations(range(centres), 2):
            length = rng.integers(100, 1_001) if index % 2 == 0 else 100 * rng.integers(1, 4)
            worlds["length"][index, one, other] = worlds["length"][index, other, one] = length
    return worlds


def plain_network(world: Array) -> SfcEnv:
    env = SfcEnv(lambda count: 0)
    env.num_dcs = int(world["num_centres"])
    env.distance = {pair: int(world["length"][pair]) for pair in itertools.permutations(range(env.num_dcs), 2)}
    return env


def path_of(world: Array, start: int, goal: int) -> list[int]:
    stops = [start]
    while stops[-1] != goal:
        stops.append(int(world["hop"][stops[-1], goal]))
    return stops


def _check(centres: int, count: int) -> Equality:
    worlds = networks(centres, count, np.random.default_rng(SEED + 1))
    find_all_paths(worlds)
    return worst(_check_network(world) for world in worlds)


def _check_network(world: Array) -> Equality:
    plain = plain_network(world)
    found: list[tuple[str, Any, Any]] = []
    for pair in itertools.permutations(range(plain.num_dcs), 2):
        path = plain.shortest_path(*pair)
        found.append((f"the path {pair}", path_of(world, *pair), path))
        found.append((f"the length of the path {pair}", world["shortest"][pair], plain.path_length(path)))
    return compare(found)
