"""What a step is worth: a row of numbers for each colony, of which the reward mode makes the total."""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import lean_inline_kernel, lean_kernel
from hotloop.core.types import Array
from hotloop.workloads.durotaxis.layout_kernels import (
    AGE,
    CENTROID_DISTANCE_ONLY,
    FULL,
    HULL,
    INTENSITY,
    NODE_REWARD,
    Colony,
    Rules,
    Scratch,
    X,
    Y,
)

ENTRIES = (
    "total", "graph", "spawn", "delete", "deletion_efficiency", "edge", "centroid", "milestone", "total_node",
    "survival", "empty_graph_recovery_penalty", "termination", "num_nodes",
)  # fmt: skip
"""Columns of the record; its fourteenth entry, `node_rewards`, is a row of each colony's nodes."""
(
    TOTAL, GRAPH, SPAWN, DELETE, EFFICIENCY, EDGE, CENTROID, MILESTONE, TOTAL_NODE,
    SURVIVAL, RECOVERY, TERMINATION, NUM_NODES,
) = range(len(ENTRIES))  # fmt: skip
LEARNED = (TOTAL, GRAPH, SPAWN, DELETE, EDGE, TOTAL_NODE)  # what there are value heads for
PARTS = tuple(ENTRIES[column] for column in LEARNED)

MARKED_AGE = 3
CROWD = 50
MILESTONES = np.array([0.25, 0.5, 0.75, 0.9])
MILESTONE_REWARDS = np.array([50.0, 150.0, 300.0, 500.0])
TERMINATION_REWARDS = np.array([0.0, -15.0, -100.0, -100.0, -50.0, 500.0])  # by outcome
RECOVERY_PENALTY = -50.0


@lean_inline_kernel
def judge_deletion(colony: Colony, scratch: Scratch, rewards: Array) -> None:
    """Of the colony as it was: were those deleted that are old enough and on softer ground than the mean?"""
    num_nodes, intensity, ages = colony.record.num_nodes, colony.places[INTENSITY], colony.counts[AGE]
    mean = 0.0
    for node in range(num_nodes):
        mean += intensity[node]
    mean /= num_nodes
    right = wrong = 0
    efficiency = 0.0
    for node in range(num_nodes):
        marked = ages[node] >= MARKED_AGE and intensity[node] < mean
        right += marked and scratch.chosen[node] == 1
        wrong += marked != (scratch.chosen[node] == 1)
        if scratch.chosen[node]:
            age, stagnation = ages[node], ages[node] - 1
            efficiency += 0.05 * max(age - 50, 0) + 0.1 * max(stagnation - 20, 0)
    rewards[DELETE], rewards[EFFICIENCY] = 2.0 * (right - wrong), efficiency


@lean_inline_kernel
def judge_growth(parents: int, steeper: int, right: int, left: int, rewards: Array) -> None:
    rewards[SPAWN] = 2.5 * steeper - (parents - steeper)
    rewards[EDGE] = 0.5 * right - 0.05 * left


@lean_inline_kernel
def judge_nodes(colony: Colony, rules: Rules, rewards: Array) -> None:
    x, y, intensity = colony.places[X], colony.places[Y], colony.places[INTENSITY]
    each, total = colony.places[NODE_REWARD], 0.0
    for node in range(colony.record.num_nodes):
        worth = 0.3 * min(intensity[node], 100.0) + 0.1 * colony.counts[HULL, node]
        if x[node] < 0.1 * rules.width:
            worth -= 0.2
        to_edge = min(y[node], rules.height - y[node]) / rules.height
        if to_edge < 0.03:
            worth -= 5.0
        elif to_edge < 0.08:
            worth -= 2.0
        elif to_edge < 0.15:
            worth -= 0.5
        each[node] = worth
        total += worth
    rewards[TOTAL_NODE], rewards[NUM_NODES] = total, colony.record.num_nodes


@lean_kernel
def population_reward(num_nodes: int) -> float:
    if num_nodes < 2:
        return -5.0
    return -3.0 * (1.0 + (num_nodes - CROWD) / CROWD) if num_nodes > CROWD else 0.1


@lean_inline_kernel
def judge_progress(colony: Colony, rules: Rules, x_before: float, rewards: Array) -> None:
    """Movement of the centroid, survival, and milestones that the right-most node passes for the first time."""
    record = colony.record
    moved = record.centroid[0] - x_before if record.num_nodes > 0 else 0.0
    rewards[CENTROID] = 5.0 * moved
    rewards[SURVIVAL] = 0.01 if record.steps < 100 else 0.03
    rewards[MILESTONE] = 0.0
    rightmost = 0.0
    for node in range(record.num_nodes):
        rightmost = max(rightmost, colony.places[X, node])
    while record.milestones < len(MILESTONES) and rightmost >= MILESTONES[record.milestones] * rules.width:
        rewards[MILESTONE] += MILESTONE_REWARDS[record.milestones]
        record.milestones += 1


@lean_inline_kernel
def sum_up(rules: Rules, steps: int, rewards: Array) -> None:
    """`graph` and `total` from the other entries."""
    population = population_reward(int(rewards[NUM_NODES]))
    rewards[GRAPH] = (
        population + rewards[CENTROID] + rewards[SPAWN] + rewards[DELETE] + rewards[EFFICIENCY] + rewards[EDGE]
    )
    ending = min(max(0.02 * rewards[TERMINATION], -10.0), 10.0)
    if rules.reward == FULL:
        rewards[TOTAL] = (
            rewards[GRAPH] + rewards[TOTAL_NODE] + rewards[SURVIVAL] + rewards[MILESTONE] + rewards[TERMINATION]
            + rewards[RECOVERY]
        )  # fmt: skip
    elif rules.reward == CENTROID_DISTANCE_ONLY:
        rewards[TOTAL] = (rewards[CENTROID] / (rules.width - 1.0) if steps > 1 else 0.0) + ending
    else:
        rewards[TOTAL] = min(population, 0.0) + rewards[DELETE] + ending
