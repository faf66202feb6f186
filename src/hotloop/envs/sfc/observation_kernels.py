"""What the policy sees: the visited centre, what runs there for each service, and what each service still waits for."""

from __future__ import annotations

from hotloop.core.types import Array
from hotloop.envs.lean_kernels import lean_kernel
from hotloop.envs.sfc.layout_kernels import (
    NUM_PLACED_FEATURES,
    NUM_REQUEST_FEATURES,
    PLACED_AT,
    REQUESTS_AT,
    SCALED,
    World,
)
from hotloop.envs.sfc.request_kernels import time_left
from hotloop.envs.sfc.tables_kernels import LIMIT, LINK_CAPACITY, NUM_SERVICES, NUM_VNFS, STORAGE_CAPACITY


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


@lean_kernel
def observe_placed(world: World, env: int, service: int, obs: Array) -> None:
    at, anything = PLACED_AT + service * NUM_PLACED_FEATURES, False
    for vnf in range(NUM_VNFS):
        count = world.here[world.visited, service, vnf]
        anything |= count > 0
        obs[env, at + 1 + vnf] = SCALED[count]
        obs[env, at + 1 + NUM_VNFS + vnf] = SCALED[world.to_go[service, vnf]]
    obs[env, at] = anything


@lean_kernel
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
