"""What must hold at every moment of any play: nothing is lost, nothing comes from nowhere, chains are in order."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.rng import derive_seeds
from hotloop.workloads.sfc.env import Sfc
from hotloop.workloads.sfc.layout_kernels import DROPPED, RUNS, SATISFIED, WAITS
from hotloop.workloads.sfc.tables_kernels import (
    CHAIN_LENGTH,
    CPU,
    FIRST_SLOT,
    LIMIT,
    NUM_SERVICES,
    RAM,
    ROUND_EVERY,
    SLOTS_PER_ROUND,
    STORAGE,
)


def path(state, env, start, goal):
    stops = [start]
    while stops[-1] != goal:
        stops.append(int(state["hop"][env, stops[-1], goal]))
    return stops


def requests_of(state, env):
    """(bundle, slot) of every request that has arrived."""
    for bundle in range(state["arrived"][env] * NUM_SERVICES):
        first = bundle // NUM_SERVICES * SLOTS_PER_ROUND + FIRST_SLOT[bundle % NUM_SERVICES]
        for slot in range(first, first + state["size"][env, bundle]):
            yield bundle, int(slot)


def check_resources(state, env):
    count = state["num_centres"][env]
    installed, idle = state["installed"][env, :count], state["idle"][env, :count]
    busy = np.zeros_like(installed)
    for row in np.flatnonzero(state["ends"][env]):
        busy[state["runs_at"][env, row], state["runs_vnf"][env, row]] += 1
    np.testing.assert_array_equal(installed - idle, busy)
    assert (idle >= 0).all()
    capacities = {"free_cpu": (state["cpu"][env, :count], CPU), "free_ram": (256, RAM), "free_storage": (2048, STORAGE)}
    for name, (capacity, need) in capacities.items():
        free = state[name][env, :count]
        assert (free >= 0).all()
        np.testing.assert_array_equal(free, capacity - installed @ need)


def check_bandwidth(state, env):
    """What is missing on each link is what pending requests hold on it."""
    count = state["num_centres"][env]
    held = np.zeros((count, count), np.int64)
    for bundle, slot in requests_of(state, env):
        if state["state"][env, slot] in (WAITS, RUNS):
            places = state["where"][env, slot, : state["placed"][env, slot]].tolist()
            for start, goal in itertools.pairwise([int(state["source"][env, bundle]), *places]):
                for one, other in itertools.pairwise(path(state, env, start, goal)):
                    held[one, other] += state["rate"][env, bundle]
                    held[other, one] += state["rate"][env, bundle]
    free = state["free_rate"][env, :count, :count]
    apart = ~np.eye(count, dtype=bool)
    assert (free[apart] >= 0).all()
    np.testing.assert_array_equal(free[apart], 1_000_000 - held[apart])


def check_counts(state, env):
    """Satisfied + dropped + pending = generated, by service; and each as its requests say."""
    counts = np.zeros((5, NUM_SERVICES), np.int64)
    for bundle, slot in requests_of(state, env):
        counts[state["state"][env, slot], bundle % NUM_SERVICES] += 1
    assert not counts[0].any()
    np.testing.assert_array_equal(counts[SATISFIED], state["satisfied"][env])
    np.testing.assert_array_equal(counts[DROPPED], state["dropped"][env])
    np.testing.assert_array_equal(counts[WAITS] + counts[RUNS], state["all_pending"][env])
    ended = state["satisfied"][env] + state["dropped"][env]
    np.testing.assert_array_equal(ended + state["all_pending"][env], state["generated"][env])


class Chains:
    """Every placement as it is seen from outside, by comparing what runs before and after a step."""

    def __init__(self):
        self.placed = {}

    def note(self, state, env):
        now = state["now"][env]
        for row in np.flatnonzero(state["ends"][env]):
            key = int(state["runs_slot"][env, row])
            entry = (int(state["ends"][env, row]), int(state["runs_vnf"][env, row]), int(state["runs_at"][env, row]))
            if entry not in self.placed.setdefault(key, []):
                self.placed[key].append(entry)
        return now

    def check(self, state, env):
        chains = [[0, 1, 2, 4, 5], [0, 1, 3, 2, 5], [0, 1, 3, 1, 0], [0, 1, 3, 2, 5], [0, 1, 5], [0, 1]]
        duration = [6, 3, 11, 7, 8, 2]
        satisfied = 0
        for bundle, slot in requests_of(state, env):
            if state["state"][env, slot] == SATISFIED:
                satisfied += 1
                ends, vnfs, places = zip(*self.placed[slot], strict=True)
                assert list(vnfs) == chains[bundle % NUM_SERVICES]
                starts = [end - duration[vnf] for end, vnf in zip(ends, vnfs, strict=True)]
                assert all(begin >= end for end, begin in zip(ends[:-1], starts[1:], strict=True))
                stops = [state["source"][env, bundle], *places, state["destination"][env, bundle]]
                km = sum(int(state["shortest"][env, one, other]) for one, other in itertools.pairwise(stops))
                arrival = bundle // NUM_SERVICES * ROUND_EVERY
                assert 3 * (ends[-1] - arrival) + km <= 3 * LIMIT[bundle % NUM_SERVICES]
                assert state["placed"][env, slot] == CHAIN_LENGTH[bundle % NUM_SERVICES]
        return satisfied


def play(envs, draw, calls, watch):
    _, mask = envs.reset()
    for _ in range(calls):
        weight = np.array([1.0] * 6 + [draw.random() * 0.3] * 6 + [0.1]) * (mask | (draw.random(mask.shape) < 0.02))
        action = (draw.random(mask.shape) * weight).argmax(axis=1)
        step = envs.step(action)
        mask = step.action_mask
        watch()
        if step.terminated.any():
            break


@given(centres=st.integers(2, 8), seed=st.integers(0, 2**32), rounds=st.integers(1, 2))
@settings(max_examples=8, deadline=None)
def test_nothing_is_negative_or_leaks_and_every_request_is_accounted_for(centres, seed, rounds):
    envs = Sfc(1, derive_seeds(seed, 1, "env"), max_data_centres=centres, max_request_count=rounds)
    draw, calls = np.random.default_rng(seed), itertools.count()

    def watch():
        if next(calls) % 25 == 0:
            state = envs.get_state()
            check_resources(state, 0)
            check_bandwidth(state, 0)
            check_counts(state, 0)

    envs.hold_finished()
    play(envs, draw, 1500, watch)


@given(centres=st.integers(2, 8), seed=st.integers(0, 2**32))
@settings(max_examples=5, deadline=None)
def test_every_satisfied_request_had_its_chain_in_order_and_in_time(centres, seed):
    envs = Sfc(1, derive_seeds(seed, 1, "env"), min_data_centres=centres, max_data_centres=centres, max_request_count=1)
    chains = Chains()
    envs.hold_finished()
    play(envs, np.random.default_rng(seed), 1200, lambda: chains.note(envs.get_state(), 0))
    chains.check(envs.get_state(), 0)


def test_at_the_end_everything_is_free_again_but_what_is_installed():
    envs = Sfc(4, derive_seeds(2, 4, "env"), max_request_count=1, max_data_centres=8)
    envs.hold_finished()
    draw, done = np.random.default_rng(0), np.zeros(4, bool)
    _, mask = envs.reset()
    while not done.all():
        weight = np.array([1.0] * 6 + [0.1] * 6 + [0.1]) * mask
        step = envs.step((draw.random(mask.shape) * weight).argmax(axis=1))
        mask, done = step.action_mask, done | step.terminated
    state = envs.get_state()
    for env, count in enumerate(state["num_centres"]):
        check_resources(state, env)
        check_counts(state, env)
        assert not state["all_pending"][env].any()
        apart = ~np.eye(count, dtype=bool)
        assert (state["free_rate"][env, :count, :count][apart] == 1_000_000).all()
        assert state["satisfied"][env].sum() > 0
