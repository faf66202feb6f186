"""N colonies in one call."""

from __future__ import annotations

import math

from hotloop.core.kernels import lean_inline_kernel, lean_kernel
from hotloop.core.types import Array
from hotloop.workloads.durotaxis.colony_kernels import keep_survivors, measure, plan_moves, respawn, spawn, start
from hotloop.workloads.durotaxis.layout_kernels import (
    DRIFTED,
    EMPTY,
    FIRST_STAGE,
    HIGH,
    LOW,
    NUM_NUMBERS,
    OUTSIDE,
    RATIO,
    RUNS,
    SUCCEEDED,
    TOO_MANY,
    Colony,
    Rules,
    Scratch,
    X,
    Y,
)
from hotloop.workloads.durotaxis.link_kernels import bypass_chosen, move_links
from hotloop.workloads.durotaxis.reward_kernels import (
    LEARNED,
    RECOVERY,
    RECOVERY_PENALTY,
    TERMINATION,
    TERMINATION_REWARDS,
    TOTAL,
    judge_deletion,
    judge_growth,
    judge_nodes,
    judge_progress,
    sum_up,
)
from hotloop.workloads.durotaxis.selection_kernels import mark_leftmost

NOT_A_NUMBER, NOT_A_CHOICE, WRONG_COUNT = -1, -2, -3  # what may be wrong with an action
LONGEST_DRIFT = 30
MOST_RECOVERIES = 2
GOAL = 0.95


@lean_kernel
def step_all(
    colonies: tuple[Array, ...],  # the fields of `Colony`, each with a leading [N]
    scratch_arrays: tuple[Array, ...],  # the fields of `Scratch`
    rules_row: Array,  # [1] of RULES
    numbers: Array,  # [N, 5] float32, or [N, 4] without the ratio where nodes choose
    choices: Array,  # [nodes of all] int64 where nodes choose
    rewards: Array,  # [N, 13] float64: the record; and so on down: written
    reward: Array,  # [N] float32
    parts: Array,  # [N, 6] float32
    flags: Array,  # [2, N] bool: terminated, truncated
    mask: Array,  # [N, 5] bool, or [0, 5] where there is no curriculum
    offsets: Array,  # [2, N + 1] int64: of nodes and edges after the step
) -> int:
    """Step every colony; returns whether any episode ended, or below 0 what is wrong with the action."""
    records, places, counts, links = colonies
    rules, scratch = rules_row[0], Scratch(*scratch_arrays)
    fault = find_fault(records, rules, numbers, choices)
    if fault < 0:
        return fault
    any_done = at = 0
    for env in range(records.shape[0]):
        colony = Colony(records[env], places[env], counts[env], links[env])
        record, row = colony.record, rewards[env]
        num_nodes = record.num_nodes
        for column in range(row.shape[0]):
            row[column] = 0.0
        if record.over == 0:
            advance(colony, rules, scratch, numbers[env], choices[at : at + num_nodes * rules.per_node], row)
        at += num_nodes
        flags[0, env], flags[1, env] = record.over & 1 != 0, record.over & 2 != 0
        any_done |= record.over
        reward[env] = row[TOTAL]
        for index, column in enumerate(LEARNED):
            parts[env, index] = row[column]
        for index in range(NUM_NUMBERS if mask.shape[0] > 0 else 0):
            mask[env, index] = index == RATIO or record.total_steps >= rules.curriculum_steps
    count_all(records, offsets)
    return any_done


@lean_kernel
def restart_all(
    colonies: tuple[Array, ...], scratch_arrays: tuple[Array, ...], rules_row: Array, wanted: Array, offsets: Array
) -> None:
    """Start a new episode where `wanted` [N]."""
    records, places, counts, links = colonies
    scratch = Scratch(*scratch_arrays)
    for env in range(records.shape[0]):
        if wanted[env]:
            start(Colony(records[env], places[env], counts[env], links[env]), rules_row[0], scratch)
    count_all(records, offsets)


@lean_inline_kernel
def count_all(records: Array, offsets: Array) -> None:
    offsets[0, 0] = offsets[1, 0] = 0
    for env in range(records.shape[0]):
        offsets[0, env + 1] = offsets[0, env] + records[env].num_nodes
        offsets[1, env + 1] = offsets[1, env] + records[env].num_edges


@lean_inline_kernel
def find_fault(records: Array, rules: Rules, numbers: Array, choices: Array) -> int:
    """Before anything has changed: is every number one, and is there a choice for every node?"""
    for env in range(numbers.shape[0]):
        for index in range(numbers.shape[1]):
            if not math.isfinite(numbers[env, index]):
                return NOT_A_NUMBER
    if rules.per_node:
        num_nodes = 0
        for env in range(records.shape[0]):
            num_nodes += records[env].num_nodes
        if num_nodes != choices.shape[0]:
            return WRONG_COUNT
        for node in range(num_nodes):
            if choices[node] != 0 and choices[node] != 1:
                return NOT_A_CHOICE
    return 0


@lean_kernel
def advance(colony: Colony, rules: Rules, scratch: Scratch, numbers: Array, choices: Array, rewards: Array) -> None:
    record, x_before = colony.record, colony.record.centroid[0]
    read_action(record, rules, numbers)
    choose(colony, rules, scratch, choices)
    record.steps += 1
    record.total_steps += 1
    judge_deletion(colony, scratch, rewards)
    num_nodes, kept = record.num_nodes, plan_moves(record.num_nodes, scratch.chosen, scratch.moved)
    if rules.per_node:
        record.action[RATIO] = (num_nodes - kept) / max(num_nodes, 1)
    if kept < num_nodes:
        bypass_chosen(colony, scratch)
    move_links(colony.links, scratch, num_nodes, kept)
    keep_survivors(colony, scratch, kept)
    steeper = spawn(colony, rules)
    right, left = measure(colony, rules, scratch)
    judge_growth(kept, steeper, right, left, rewards)
    judge_nodes(colony, rules, rewards)
    judge_progress(colony, rules, x_before, rewards)
    end(colony, rules, scratch, x_before, rewards)
    sum_up(rules, record.steps, rewards)


@lean_kernel
def read_action(record, rules: Rules, numbers: Array) -> None:
    """Into `record.action`, within bounds; the first stage of a curriculum leaves only the ratio to the policy."""
    first = 1 if rules.per_node else 0
    for index in range(first, NUM_NUMBERS):
        high = rules.max_delete_ratio if index == RATIO else HIGH[index]
        record.action[index] = min(max(float(numbers[index - first]), LOW[index]), high)
    if record.total_steps < rules.curriculum_steps:
        for index in range(RATIO + 1, NUM_NUMBERS):
            record.action[index] = FIRST_STAGE[index]


@lean_kernel
def choose(colony: Colony, rules: Rules, scratch: Scratch, choices: Array) -> None:
    """Who is to be deleted."""
    num_nodes = colony.record.num_nodes
    if rules.per_node:
        for node in range(num_nodes):
            scratch.chosen[node] = choices[node]
    else:
        count = int(math.floor(colony.record.action[RATIO] * num_nodes))
        mark_leftmost(colony.places[X], num_nodes, count, scratch.order, scratch.chosen)


@lean_kernel
def end(colony: Colony, rules: Rules, scratch: Scratch, x_before: float, rewards: Array) -> None:
    """Whether the episode is over, and why; an empty colony may start again instead."""
    record = colony.record
    went_left = record.num_nodes > 0 and record.centroid[0] < x_before
    record.drift = record.drift + 1 if went_left else 0
    record.outcome = outcome_of(colony, rules)
    if record.outcome == EMPTY and rules.recovery and record.recoveries < MOST_RECOVERIES:
        respawn(colony, rules, scratch)
        record.outcome, rewards[RECOVERY] = RUNS, RECOVERY_PENALTY
    rewards[TERMINATION] = TERMINATION_REWARDS[record.outcome]
    record.over = (record.outcome != RUNS) + 2 * (record.steps >= rules.max_steps)


@lean_inline_kernel
def outcome_of(colony: Colony, rules: Rules) -> int:
    record, x, y = colony.record, colony.places[X], colony.places[Y]
    if record.num_nodes > rules.max_nodes:
        return TOO_MANY
    if record.num_nodes == 0:
        return EMPTY
    succeeded = False
    for node in range(record.num_nodes):
        if x[node] < 0.0 or x[node] > rules.width or y[node] < 0.0 or y[node] > rules.height:
            return OUTSIDE
        succeeded = succeeded or x[node] >= GOAL * rules.width
    if record.drift >= LONGEST_DRIFT:
        return DRIFTED
    return SUCCEEDED if succeeded else RUNS
