"""Shortest paths between all pairs of data centres, once an episode: against Dijkstra's, and against listing every path
there is (`sfc-all-paths`).

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
from hotloop.prove.reference.sfc_env import AllPathsSfcEnv, SfcEnv

CENTRES = (2, 4, 6, 8)
CHECKED = 200
CHECKED_ALL_PATHS = {4: 500, 8: 2}
"""Data centres -> networks compared."""
SEED = 5


def sfc_paths_cases(small: bool) -> list[Case]:
    checked = 4 if small else CHECKED
    return [
        Case("sfc-paths", str(centres), partial(_build, SfcEnv, centres, checked), is_default=centres == 8)
        for centres in ((2, 5) if small else CENTRES)
    ]


def sfc_all_paths_cases(small: bool) -> list[Case]:
    networks = {5: 4} if small else CHECKED_ALL_PATHS
    return [
        Case("sfc-all-paths", str(centres), partial(_build, AllPathsSfcEnv, centres, checked), is_default=centres == 8)
        for centres, checked in networks.items()
    ]


def _build(make: type[SfcEnv], centres: int, num_checked: int) -> Built:
    worlds = networks(centres, 1, np.random.default_rng(SEED))
    plain = plain_network(worlds[0], make)
    pairs = list(itertools.permutations(range(centres), 2))

    def reference() -> list[list[int]]:
        plain.paths.clear()  # a new episode
        return [plain.shortest_path(*pair) for pair in pairs]

    def fast() -> Array:
        find_all_paths(worlds)
        return worlds[0]

    def growth() -> Growth:
        few, many = (networks(count, 64, np.random.default_rng(SEED)) for count in (4, 16))
        pairs_of = {count: count * (count - 1) for count in (4, 16)}
        units = pairs_of[16] / pairs_of[4]
        return Growth(partial(find_all_paths, few), partial(find_all_paths, many), units, "4 centres", "16, per pair")

    return Built(
        reference=reference,
        fast=fast,
        compare=lambda world, paths: compare_paths(world, plain, paths),
        further=partial(_check, make, centres, num_checked),
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


def plain_network(world: Array, make: type[SfcEnv] = SfcEnv) -> SfcEnv:
    env = make(lambda count: 0)
    env.num_dcs = int(world["num_centres"])
    env.distance = {pair: int(world["length"][pair]) for pair in itertools.permutations(range(env.num_dcs), 2)}
    return env


def path_of(world: Array, start: int, goal: int) -> list[int]:
    stops = [start]
    while stops[-1] != goal:
        stops.append(int(world["hop"][stops[-1], goal]))
    return stops


def _check(make: type[SfcEnv], centres: int, count: int) -> Equality:
    worlds = networks(centres, count, np.random.default_rng(SEED + 1))
    find_all_paths(worlds)
    pairs, found = list(itertools.permutations(range(centres), 2)), []
    for world in worlds:
        plain = plain_network(world, make)
        found.append(compare_paths(world, plain, [plain.shortest_path(*pair) for pair in pairs]))
    return worst(found)


def compare_paths(world: Array, plain: SfcEnv, paths: list[list[int]]) -> Equality:
    found: list[tuple[str, Any, Any]] = []
    for pair, path in zip(itertools.permutations(range(plain.num_dcs), 2), paths, strict=True):
        found.append((f"the path {pair}", path_of(world, *pair), path))
        found.append((f"the length of the path {pair}", world["shortest"][pair], plain.path_length(path)))
    return compare(found)
