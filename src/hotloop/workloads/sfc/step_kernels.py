"""N networks in one call.

What the policy sees: the visited centre, what runs there for each service, and what each service still waits for.
"""

from __future__ import annotations

from typing import Any

from hotloop.core.kernels import lean_inline_kernel, lean_kernel, next_below
from hotloop.core.types import Array
from hotloop.workloads.sfc.choice_kernels import NOBODY, begin_cycle, can_run, find_candidates, next_centre, write_mask
from hotloop.workloads.sfc.layout_kernels import (
    CPU_USE,
    MOST_RUNNING,
    NUM_PLACED_FEATURES,
    NUM_REQUEST_FEATURES,
    NUM_USES,
    PLACED_AT,
    RAM_USE,
    REQUESTS_AT,
    RUNS,
    SCALED,
    STORAGE_USE,
    SfcRules,
    World,
)
from hotloop.workloads.sfc.network_kernels import draw_network
from hotloop.workloads.sfc.request_kernels import advance, arrive, drop_late, give, time_left
from hotloop.workloads.sfc.tables_kernels import (
    CPU,
    LAST_UNIT,
    LIMIT,
    LINK_CAPACITY,
    NUM_SERVICES,
    NUM_VNFS,
    PROCESSING,
    RAM,
    ROUND_EVERY,
    STORAGE,
    STORAGE_CAPACITY,
    WAIT,
)


@lean_kernel
def observe(world: World, env: int, obs: Array) -> None:
    place = world.visited
    for vnf in range(NUM_VNFS):
        obs[env, vnf] = SCALED[world.installed[place, vnf]]
        obs[env, NUM_VNFS + vnf] = SCALED[world.idle[place, vnf]]
    obs[env, 2 * NUM_VNFS] = world.free_storage[place] / STORAGE_CAPACITY
    obs[env, 2 * NUM_VNFS + 1] = world.free_cpu[place] / world.cpu[place]
    for service in range(NUM_SERVICES):
        observe_placed(world, env, service, obs)
        observe_requests(world, env, service, obs)


@lean_inline_kernel
def observe_placed(world: World, env: int, service: int, obs: Array) -> None:
    at, anything = PLACED_AT + service * NUM_PLACED_FEATURES, False
    for vnf in range(NUM_VNFS):
        count = world.here[world.visited, service, vnf]
        anything |= count > 0
        obs[env, at + 1 + vnf] = SCALED[count]
        obs[env, at + 1 + NUM_VNFS + vnf] = SCALED[world.to_go[service, vnf]]
    obs[env, at] = anything


@lean_inline_kernel
def observe_requests(world: World, env: int, service: int, obs: Array) -> None:
    at, pending = REQUESTS_AT + service * NUM_REQUEST_FEATURES, world.all_pending[service]
    obs[env, at] = pending > 0
    obs[env, at + 1] = SCALED[pending]
    obs[env, at + 2] = obs[env, at + 3] = 0.0
    for number in range(world.arrived):  # all of a service have one limit: the oldest is the most urgent
        bundle = number * NUM_SERVICES + service
        if world.pending[bundle] > 0:
            obs[env, at + 2] = time_left(world, bundle) / LIMIT[service]
            obs[env, at + 3] = world.rate[bundle] / LINK_CAPACITY
            break
    for vnf in range(NUM_VNFS):
        obs[env, at + 4 + vnf] = SCALED[world.next_vnf[service, vnf]]


@lean_kernel
def step_all(
    worlds: Array,  # [N] of WORLD
    numbers: tuple[Any, ...],  # the fields of `Rules` as a plain tuple: a named one costs more per call
    action: Array,  # [N] int64; empty: reset every network instead
    obs: Array,  # [N, F] float32, and so on down: written
    final_obs: Array,  # [N, F], only where any episode ended
    reward: Array,  # [N] float32
    flags: Array,  # [2, N] bool: terminated, truncated
    mask: Array,  # [N, A] bool
    final_mask: Array,  # [N, A], only where any episode ended
    sums: Array,  # [N, 31] int64: where an episode ended, what it is judged by
    best: Array,  # [V] float64, scratch
) -> bool:
    """Step every network and restart the finished ones; True where any finished.

    A reset goes the same way, so that all of it is compiled once.
    """
    rules = SfcRules(*numbers)
    any_done = False
    for env in range(worlds.shape[0]):
        world = worlds[env]
        starts = action.shape[0] == 0
        if not starts:
            reward[env] = act(world, rules, action[env]) + pass_time(world, rules)
            flags[0, env], flags[1, env] = is_over(world), world.steps >= rules.max_steps
            next_centre(world)
            if flags[0, env] or flags[1, env]:
                any_done, starts = True, rules.restarts
                look(world, env, final_obs, final_mask, best)
                note(world, env, sums)
        if starts:
            start(world, rules)
        look(world, env, obs, mask, best)
    if any_done:
        copy_running(obs, mask, flags, final_obs, final_mask)
    return any_done


@lean_kernel
def start(world: World, rules: SfcRules) -> None:
    """An empty network and its first requests."""
    world.now = world.steps = world.arrived = 0
    world.num_centres = rules.min_centres + next_below(world.generator, 0, rules.max_centres - rules.min_centres + 1)
    world.rounds = rules.min_rounds + next_below(world.generator, 0, rules.max_rounds - rules.min_rounds + 1)
    for service in range(NUM_SERVICES):
        world.all_pending[service] = world.generated[service] = world.satisfied[service] = 0
        world.dropped[service] = world.delay[service] = world.carried[service] = 0
        for vnf in range(NUM_VNFS):
            world.to_go[service, vnf] = world.next_vnf[service, vnf] = 0
            for place in range(world.num_centres):
                world.here[place, service, vnf] = 0
    for resource in range(NUM_USES):
        world.use[resource] = world.used[resource] = 0
    for row in range(MOST_RUNNING):
        world.ends[row] = 0
    draw_network(world)
    arrive(world)
    begin_cycle(world)
    world.visited = world.order[0]


@lean_kernel
def look(world: World, env: int, obs: Array, mask: Array, best: Array) -> None:
    find_candidates(world, best)
    write_mask(world, env, mask)
    observe(world, env, obs)


@lean_kernel
def act(world: World, rules: SfcRules, action: int) -> float:
    """Carry out the action at the visited centre; its own reward."""
    place = world.visited
    if action < NUM_VNFS:
        slot = world.candidate[action]
        if slot == NOBODY or not can_run(world, place, action):
            return rules.invalid_reward
        allocate(world, place, action, slot)
    elif action < WAIT:
        vnf = action - NUM_VNFS
        if world.idle[place, vnf] == 0:
            return rules.invalid_reward
        world.idle[place, vnf] -= 1
        install(world, place, vnf, -1)
        for service in range(NUM_SERVICES):
            if world.to_go[service, vnf] > 0:
                return rules.uninstall_needed_reward
    return 0.0


@lean_kernel
def allocate(world: World, place: int, vnf: int, slot: int) -> None:
    if world.idle[place, vnf] > 0:
        world.idle[place, vnf] -= 1
    else:
        install(world, place, vnf, 1)
    give(world, slot, place)
    row = 0
    while world.ends[row] > 0:
        row += 1
    world.ends[row], world.runs_slot[row] = world.now + PROCESSING[vnf], slot
    world.runs_at[row], world.runs_vnf[row] = place, vnf


@lean_kernel
def install(world: World, place: int, vnf: int, count: int) -> None:
    """Install (1) or remove (-1) an instance."""
    world.installed[place, vnf] += count
    world.free_cpu[place] -= count * CPU[vnf]
    world.free_ram[place] -= count * RAM[vnf]
    world.free_storage[place] -= count * STORAGE[vnf]
    world.use[CPU_USE] += count * CPU[vnf]
    world.use[RAM_USE] += count * RAM[vnf]
    world.use[STORAGE_USE] += count * STORAGE[vnf]


@lean_inline_kernel
def pass_time(world: World, rules: SfcRules) -> float:
    """One unit: VNFs finish, late requests are dropped, a new round arrives; the reward of what ended."""
    for resource in range(NUM_USES):
        world.used[resource] += world.use[resource]
    world.now += 1
    world.steps += 1
    satisfied, dropped = finish(world)
    dropped += drop_late(world, world.now >= LAST_UNIT)
    if world.now == world.arrived * ROUND_EVERY and world.arrived < world.rounds:
        arrive(world)
    return satisfied * rules.satisfied_reward + dropped * rules.dropped_reward


@lean_kernel
def finish(world: World) -> tuple[int, int]:
    """VNFs whose time is over are idle again; requests satisfied and dropped by it."""
    satisfied = dropped = 0
    for row in range(MOST_RUNNING):
        if world.ends[row] == world.now:
            world.ends[row] = 0
            world.idle[world.runs_at[row], world.runs_vnf[row]] += 1
            slot = world.runs_slot[row]
            if world.state[slot] == RUNS:  # a dropped one leaves its VNF busy
                outcome = advance(world, slot)
                satisfied += outcome > 0
                dropped += outcome < 0
    return satisfied, dropped


@lean_kernel
def is_over(world: World) -> bool:
    pending = 0
    for service in range(NUM_SERVICES):
        pending += world.all_pending[service]
    return world.now >= LAST_UNIT or (pending == 0 and world.arrived == world.rounds)


@lean_kernel
def note(world: World, env: int, sums: Array) -> None:
    """What an episode is judged by: four sums of each service, then time, centres, their CPU and the uses."""
    for service in range(NUM_SERVICES):
        at = 4 * service
        sums[env, at], sums[env, at + 1] = world.generated[service], world.satisfied[service]
        sums[env, at + 2], sums[env, at + 3] = world.delay[service], world.carried[service]
    at = 4 * NUM_SERVICES
    sums[env, at], sums[env, at + 1], sums[env, at + 2] = world.now, world.num_centres, 0
    for place in range(world.num_centres):
        sums[env, at + 2] += world.cpu[place]
    for resource in range(NUM_USES):
        sums[env, at + 3 + resource] = world.used[resource]


@lean_inline_kernel
def copy_running(obs: Array, mask: Array, flags: Array, final_obs: Array, final_mask: Array) -> None:
    """What is final of the episodes that go on is what they show now."""
    for env in range(obs.shape[0]):
        if not (flags[0, env] or flags[1, env]):
            for index in range(obs.shape[1]):
                final_obs[env, index] = obs[env, index]
            for index in range(mask.shape[1]):
                final_mask[env, index] = mask[env, index]
