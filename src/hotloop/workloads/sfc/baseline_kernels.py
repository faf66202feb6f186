"""Rules that place VNFs without learning: what each request would choose, the most urgent first."""

from __future__ import annotations

from hotloop.core.kernels import lean_inline_kernel, lean_kernel
from hotloop.core.types import Array
from hotloop.workloads.sfc.choice_kernels import can_run
from hotloop.workloads.sfc.layout_kernels import WAITS, World
from hotloop.workloads.sfc.network_kernels import free_bandwidth
from hotloop.workloads.sfc.request_kernels import first_slot, previous_centre, time_left
from hotloop.workloads.sfc.tables_kernels import CHAIN, NUM_SERVICES, WAIT

NOWHERE = -1
REUSE = 100.0


@lean_kernel
def choose_all(worlds: Array, along_path: bool, action: Array) -> None:
    """For every network: serve the most urgent request that would be placed at the visited centre, else wait."""
    for env in range(worlds.shape[0]):
        action[env] = choose(worlds[env], along_path)


@lean_kernel
def choose(world: World, along_path: bool) -> int:
    """Bundles in the order of the time they have left, by looking for the next one each time: there are few."""
    last_left, last = -1, -1
    for _ in range(world.arrived * NUM_SERVICES):
        following, least = -1, 0
        for bundle in range(world.arrived * NUM_SERVICES):
            left = time_left(world, bundle)
            is_later = left > last_left or (left == last_left and bundle > last)
            if world.pending[bundle] and is_later and (following < 0 or left < least):
                following, least = bundle, left
        if following < 0:
            break
        action = choose_of_bundle(world, following, along_path)
        if action != WAIT:
            return action
        last_left, last = least, following
    return WAIT


@lean_inline_kernel
def choose_of_bundle(world: World, bundle: int, along_path: bool) -> int:
    """What the oldest of its requests that wants the visited centre needs; equal requests are asked once."""
    first, asked = first_slot(bundle), -1
    for slot in range(first, first + world.size[bundle]):
        if world.state[slot] != WAITS:
            continue
        kind = int(world.placed[slot])
        for stage in range(world.placed[slot]):
            kind = kind * 16 + world.where[slot, stage]
        if kind == asked:
            continue
        asked = kind
        vnf = CHAIN[bundle % NUM_SERVICES, world.placed[slot]]
        place = best_on_path(world, bundle, slot, vnf) if along_path else NOWHERE
        if place == NOWHERE:
            place = nearest(world, bundle, slot, vnf)
        if place == world.visited:
            return vnf
    return WAIT


@lean_inline_kernel
def is_feasible(world: World, bundle: int, slot: int, vnf: int, place: int) -> bool:
    """Whether the VNF can run there and the request's data can get there."""
    start = previous_centre(world, bundle, slot)
    return can_run(world, place, vnf) and free_bandwidth(world, start, place) >= world.rate[bundle]


@lean_inline_kernel
def best_on_path(world: World, bundle: int, slot: int, vnf: int) -> int:
    """On the way from source to destination: 100 where the request runs already, plus the share of CPU that is free."""
    place, goal = int(world.source[bundle]), int(world.destination[bundle])
    best, highest = NOWHERE, -1.0
    while True:
        score = world.free_cpu[place] / world.cpu[place]
        for stage in range(world.placed[slot]):
            if world.where[slot, stage] == place:
                score += REUSE
                break
        if score > highest and is_feasible(world, bundle, slot, vnf, place):
            best, highest = place, score
        if place == goal:
            return best
        place = int(world.hop[place, goal])


@lean_kernel
def nearest(world: World, bundle: int, slot: int, vnf: int) -> int:
    """The nearest centre to where the request's data is."""
    start = previous_centre(world, bundle, slot)
    best, least = NOWHERE, 0
    for place in range(world.num_centres):
        length = world.shortest[start, place]
        if (best == NOWHERE or length < least) and is_feasible(world, bundle, slot, vnf, place):
            best, least = place, length
    return best
