"""The life of a request: it arrives with its bundle, gets VNF after VNF, and is satisfied or dropped."""

from __future__ import annotations

from hotloop.core.kernels import lean_inline_kernel, lean_kernel, next_below
from hotloop.workloads.sfc.layout_kernels import DROPPED, RUNS, SATISFIED, WAITS, World
from hotloop.workloads.sfc.network_kernels import reserve
from hotloop.workloads.sfc.tables_kernels import (
    BANDWIDTH,
    CHAIN,
    CHAIN_LENGTH,
    FEWEST,
    FIRST_SLOT,
    IOT_BANDWIDTHS,
    KM_PER_UNIT,
    LIMIT,
    LONGEST_CHAIN,
    MASSIVE_IOT,
    MOST,
    NUM_SERVICES,
    ROUND_EVERY,
    SLOTS_PER_ROUND,
)


@lean_inline_kernel
def first_slot(bundle: int) -> int:
    return bundle // NUM_SERVICES * SLOTS_PER_ROUND + FIRST_SLOT[bundle % NUM_SERVICES]


@lean_inline_kernel
def bundle_of(slot: int) -> int:
    within, service = slot % SLOTS_PER_ROUND, NUM_SERVICES - 1
    while FIRST_SLOT[service] > within:
        service -= 1
    return slot // SLOTS_PER_ROUND * NUM_SERVICES + service


@lean_inline_kernel
def time_left(world: World, bundle: int) -> int:
    """Units until the requests of a bundle are too old; negative afterwards."""
    return bundle // NUM_SERVICES * ROUND_EVERY + LIMIT[bundle % NUM_SERVICES] - world.now


@lean_kernel
def arrive(world: World) -> None:
    """A round: one bundle of every service; size, bandwidth, source and destination are the bundle's."""
    first = world.arrived * NUM_SERVICES
    world.arrived += 1
    for service in range(NUM_SERVICES):
        draw_bundle(world, first + service, service)


@lean_inline_kernel
def draw_bundle(world: World, bundle: int, service: int) -> None:
    generator = world.generator
    size = FEWEST[service] + next_below(generator, 0, MOST[service] - FEWEST[service] + 1)
    world.rate[bundle] = BANDWIDTH[service]
    if service == MASSIVE_IOT:
        world.rate[bundle] += next_below(generator, 0, IOT_BANDWIDTHS)
    source = next_below(generator, 0, world.num_centres)
    destination = next_below(generator, 0, world.num_centres - 1)
    world.source[bundle], world.destination[bundle] = source, destination + (destination >= source)
    world.size[bundle] = world.pending[bundle] = size
    for stage in range(LONGEST_CHAIN):
        world.waiting[bundle, stage] = size if stage == 0 else 0
    for slot in range(first_slot(bundle), first_slot(bundle) + size):
        world.state[slot], world.placed[slot] = WAITS, 0
    world.generated[service] += size
    world.all_pending[service] += size
    world.next_vnf[service, CHAIN[service, 0]] += size
    for stage in range(CHAIN_LENGTH[service]):
        world.to_go[service, CHAIN[service, stage]] += size


@lean_inline_kernel
def previous_centre(world: World, bundle: int, slot: int) -> int:
    """Where the request's data is now: the centre of its last VNF, at first its source."""
    placed = world.placed[slot]
    return int(world.where[slot, placed - 1]) if placed else int(world.source[bundle])


@lean_kernel
def give(world: World, slot: int, place: int) -> None:
    """The request's next VNF now runs for it at `place`."""
    bundle, stage = bundle_of(slot), int(world.placed[slot])
    service = bundle % NUM_SERVICES
    reserve(world, previous_centre(world, bundle, slot), place, int(world.rate[bundle]))
    vnf = CHAIN[service, stage]
    world.state[slot], world.placed[slot], world.where[slot, stage] = RUNS, stage + 1, place
    world.waiting[bundle, stage] -= 1
    world.here[place, service, vnf] += 1
    world.to_go[service, vnf] -= 1
    world.next_vnf[service, vnf] -= 1
    if stage + 1 < CHAIN_LENGTH[service]:
        world.next_vnf[service, CHAIN[service, stage + 1]] += 1


@lean_kernel
def advance(world: World, slot: int) -> int:
    """The request's VNF is done: it waits for the next (0), or was the last, and 1: satisfied, -1: dropped."""
    bundle, placed = bundle_of(slot), int(world.placed[slot])
    service = bundle % NUM_SERVICES
    if placed < CHAIN_LENGTH[service]:
        world.state[slot] = WAITS
        world.waiting[bundle, placed] += 1
        return 0
    delay = KM_PER_UNIT * (LIMIT[service] - time_left(world, bundle)) + travelled(world, bundle, slot)
    if delay > KM_PER_UNIT * LIMIT[service]:
        end(world, bundle, slot, False)
        return -1
    end(world, bundle, slot, True)
    world.delay[service] += delay
    world.carried[service] += world.rate[bundle]
    return 1


@lean_inline_kernel
def travelled(world: World, bundle: int, slot: int) -> int:
    """Kilometres from the source over every VNF's centre to the destination."""
    place, length = int(world.source[bundle]), 0
    for stage in range(world.placed[slot]):
        following = int(world.where[slot, stage])
        length += world.shortest[place, following]
        place = following
    return length + world.shortest[place, world.destination[bundle]]


@lean_kernel
def end(world: World, bundle: int, slot: int, satisfied: bool) -> None:
    """No longer pending: its bandwidth is free again, and it needs nothing more."""
    service, placed = bundle % NUM_SERVICES, int(world.placed[slot])
    place = int(world.source[bundle])
    for stage in range(placed):
        following = int(world.where[slot, stage])
        reserve(world, place, following, -int(world.rate[bundle]))
        world.here[following, service, CHAIN[service, stage]] -= 1
        place = following
    for stage in range(placed, CHAIN_LENGTH[service]):
        world.to_go[service, CHAIN[service, stage]] -= 1
    if placed < CHAIN_LENGTH[service]:
        world.next_vnf[service, CHAIN[service, placed]] -= 1
    if world.state[slot] == WAITS:
        world.waiting[bundle, placed] -= 1
    world.state[slot] = SATISFIED if satisfied else DROPPED
    world.pending[bundle] -= 1
    world.all_pending[service] -= 1
    world.satisfied[service] += satisfied
    world.dropped[service] += not satisfied


@lean_inline_kernel
def drop_late(world: World, everyone: bool) -> int:
    """Drop every request that is older than its limit, or all that are pending; how many."""
    count = 0
    for bundle in range(world.arrived * NUM_SERVICES):
        if world.pending[bundle] and (everyone or time_left(world, bundle) < 0):
            first = first_slot(bundle)
            for slot in range(first, first + world.size[bundle]):
                if world.state[slot] == WAITS or world.state[slot] == RUNS:
                    end(world, bundle, slot, False)
                    count += 1
    return count
