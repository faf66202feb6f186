"""Whose turn it is: the order of a cycle, who would get each VNF at the visited centre, and which actions can be."""

from __future__ import annotations

from hotloop.core.kernels import lean_inline_kernel, lean_kernel
from hotloop.core.types import Array
from hotloop.workloads.sfc.layout_kernels import WAITS, World
from hotloop.workloads.sfc.network_kernels import free_bandwidth
from hotloop.workloads.sfc.request_kernels import first_slot, previous_centre, time_left
from hotloop.workloads.sfc.tables_kernels import (
    CHAIN,
    CHAIN_LENGTH,
    CPU,
    NUM_SERVICES,
    NUM_VNFS,
    RAM,
    STORAGE,
    UNITS_PER_MS,
    WAIT,
)

NOBODY = -1
LOWEST = -1e300


@lean_inline_kernel
def next_centre(world: World) -> None:
    """Go on to the next centre of the cycle, or begin a new one."""
    world.turn += 1
    if world.turn >= world.num_centres:
        begin_cycle(world)
    world.visited = world.order[world.turn]


@lean_kernel
def begin_cycle(world: World) -> None:
    """First the centres on the path of the most urgent request, from its source on, then the others by number."""
    bundle, filled, seen = most_urgent(world), 0, 0
    world.turn = 0
    if bundle != NOBODY:
        place, goal = int(world.source[bundle]), world.destination[bundle]
        while True:
            world.order[filled] = place
            filled += 1
            seen |= 1 << place
            if place == goal:
                break
            place = int(world.hop[place, goal])
    for place in range(world.num_centres):
        if not seen >> place & 1:
            world.order[filled] = place
            filled += 1


@lean_inline_kernel
def most_urgent(world: World) -> int:
    """The oldest bundle among those whose pending requests have the least time left."""
    best, least = NOBODY, 0
    for bundle in range(world.arrived * NUM_SERVICES):
        left = time_left(world, bundle)
        if world.pending[bundle] and (best == NOBODY or left < least):
            best, least = bundle, left
    return best


@lean_inline_kernel
def find_candidates(world: World, best: Array) -> None:
    """Who has the highest priority for each VNF at the visited centre; `best` [V] float64 is scratch."""
    for vnf in range(NUM_VNFS):
        world.candidate[vnf] = NOBODY
        best[vnf] = LOWEST
    for bundle in range(world.arrived * NUM_SERVICES):
        if world.pending[bundle]:
            offer_bundle(world, bundle, best)


@lean_inline_kernel
def offer_bundle(world: World, bundle: int, best: Array) -> None:
    """Requests of a bundle differ in how far they are only: one scan at most, for the stages that can still win."""
    service, place = bundle % NUM_SERVICES, world.visited
    base = urgency(time_left(world, bundle))
    stages = 0
    for stage in range(CHAIN_LENGTH[service]):
        if world.waiting[bundle, stage] and base + 10.0 > best[CHAIN[service, stage]]:
            stages |= 1 << stage
    if stages == 0:
        return
    reachable = reachable_from(world, place, world.rate[bundle])
    first = first_slot(bundle)
    for slot in range(first, first + world.size[bundle]):
        stage = int(world.placed[slot])
        if world.state[slot] != WAITS or not stages >> stage & 1:
            continue
        vnf, priority = CHAIN[service, stage], base + nearness(world, slot, place)
        if priority > best[vnf] and reachable >> previous_centre(world, bundle, slot) & 1:
            best[vnf] = priority
            world.candidate[vnf] = slot


@lean_inline_kernel
def urgency(left: int) -> float:
    """P1 + P3 of a request with `left` units to its limit."""
    milliseconds = left / UNITS_PER_MS
    return -milliseconds + (100.0 / (milliseconds + 1e-6) if milliseconds < 10.0 else 0.0)


@lean_inline_kernel
def nearness(world: World, slot: int, place: int) -> float:
    """P2: whether an earlier VNF of the request is at `place`."""
    for stage in range(world.placed[slot]):
        if world.where[slot, stage] == place:
            return 10.0
    return -10.0 if world.placed[slot] else 0.0


@lean_inline_kernel
def reachable_from(world: World, place: int, rate: int) -> int:
    """Bit i: the path from centre i to `place` has `rate` kbps free."""
    bits = 0
    for start in range(world.num_centres):
        if free_bandwidth(world, start, place) >= rate:
            bits |= 1 << start
    return bits


@lean_inline_kernel
def can_run(world: World, place: int, vnf: int) -> bool:
    """An instance is idle, or one more fits."""
    return world.idle[place, vnf] > 0 or (
        world.free_cpu[place] >= CPU[vnf]
        and world.free_ram[place] >= RAM[vnf]
        and world.free_storage[place] >= STORAGE[vnf]
    )


@lean_inline_kernel
def write_mask(world: World, env: int, mask: Array) -> None:
    place = world.visited
    for vnf in range(NUM_VNFS):
        mask[env, vnf] = world.candidate[vnf] != NOBODY and can_run(world, place, vnf)
        mask[env, NUM_VNFS + vnf] = world.idle[place, vnf] > 0
    mask[env, WAIT] = True
