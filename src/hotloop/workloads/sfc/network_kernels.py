"""Data centres and the links between them: drawing a network, its shortest paths, and bandwidth along them."""

from __future__ import annotations

from hotloop.core.kernels import lean_inline_kernel, lean_kernel, next_below
from hotloop.core.types import Array
from hotloop.workloads.sfc.layout_kernels import BANDWIDTH_USE, World
from hotloop.workloads.sfc.tables_kernels import (
    CPU_RANGE,
    LENGTH_RANGE,
    LINK_CAPACITY,
    NUM_VNFS,
    RAM_CAPACITY,
    STORAGE_CAPACITY,
)

HOPS_BITS = 6


@lean_inline_kernel
def draw_network(world: World) -> None:
    """The CPU of every centre, then the length of every pair's link."""
    count = world.num_centres
    for place in range(count):
        cpu = CPU_RANGE[0] + next_below(world.generator, 0, CPU_RANGE[1] - CPU_RANGE[0] + 1)
        world.cpu[place] = world.free_cpu[place] = cpu
        world.free_ram[place], world.free_storage[place] = RAM_CAPACITY, STORAGE_CAPACITY
        for vnf in range(NUM_VNFS):
            world.installed[place, vnf] = world.idle[place, vnf] = 0
    for one in range(count):
        for other in range(one + 1, count):
            length = LENGTH_RANGE[0] + next_below(world.generator, 0, LENGTH_RANGE[1] - LENGTH_RANGE[0] + 1)
            world.length[one, other] = world.length[other, one] = length
            world.free_rate[one, other] = world.free_rate[other, one] = LINK_CAPACITY
    find_paths(world)


@lean_kernel
def find_all_paths(worlds: Array) -> None:
    """The paths of every network, from its links."""
    for env in range(worlds.shape[0]):
        find_paths(worlds[env])


@lean_inline_kernel
def find_paths(world: World) -> None:
    """Once an episode: of equally short paths the one with fewest hops, of those the first by the centres' numbers.

    Length and hops are one number while searching (Floyd and Warshall), which makes both count at once.
    """
    count = world.num_centres
    shortest = world.shortest
    for one in range(count):
        for other in range(count):
            shortest[one, other] = 0 if one == other else (world.length[one, other] << HOPS_BITS) + 1
    for middle in range(count):
        for one in range(count):
            for other in range(count):
                through = shortest[one, middle] + shortest[middle, other]
                if through < shortest[one, other]:
                    shortest[one, other] = through
    for one in range(count):
        for other in range(count):
            world.hop[one, other] = first_hop(world, one, other)
    for one in range(count):
        for other in range(count):
            shortest[one, other] >>= HOPS_BITS


@lean_inline_kernel
def first_hop(world: World, one: int, other: int) -> int:
    for near in range(world.num_centres):
        edge = (world.length[one, near] << HOPS_BITS) + 1
        if near != one and edge + world.shortest[near, other] == world.shortest[one, other]:
            return near
    return one


@lean_inline_kernel
def free_bandwidth(world: World, start: int, end: int) -> int:
    """What every link of the path has left, kbps."""
    least, place = LINK_CAPACITY, start
    while place != end:
        following = world.hop[place, end]
        least = min(least, world.free_rate[place, following])
        place = following
    return least


@lean_inline_kernel
def reserve(world: World, start: int, end: int, rate: int) -> None:
    """Take `rate` kbps on every link of the path; a negative one gives it back."""
    place = start
    while place != end:
        following = world.hop[place, end]
        world.free_rate[place, following] -= rate
        world.free_rate[following, place] -= rate
        world.use[BANDWIDTH_USE] += rate
        place = following
