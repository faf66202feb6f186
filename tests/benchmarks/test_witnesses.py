"""The witnesses work. That they import nothing of ours, `tests/test_architecture.py` holds."""

from __future__ import annotations

import random

import numpy as np
import torch

from benchmarks.witnesses.dqn_cartpole import Config, train
from benchmarks.witnesses.dqn_parts import NStepBuffer
from benchmarks.witnesses.replays import SumTree


def test_the_single_file_dqn_makes_its_updates():
    torch.manual_seed(0)
    random.seed(0)
    agent, buffer, returns = train(Config(total_steps=120, learning_starts=100, epsilon_steps=50))
    assert agent.updates == 20
    assert len(buffer.buffer) == 120
    assert sum(returns) <= 120


def test_the_plain_sum_tree_finds_the_leaf_that_holds_the_target():
    tree = SumTree(4)
    for leaf, value in enumerate([1.0, 2.0, 3.0, 4.0]):
        tree.set(leaf, value)
    assert tree.total == 10.0
    assert [tree.find(target) for target in (0.5, 1.0, 2.9, 3.0, 5.9, 6.0, 9.9)] == [0, 1, 1, 2, 2, 3, 3]


def test_the_plain_window_sums_three_rewards_and_flushes_at_the_end():
    window = NStepBuffer(3, 0.5)
    obs = np.arange(5)
    assert window.add(obs[0], 0, 1.0, obs[1], False, False) == []
    assert window.add(obs[1], 0, 1.0, obs[2], False, False) == []
    assert window.add(obs[2], 1, 1.0, obs[3], False, False) == [(0, 0, 1.75, 0.125, 3)]
    assert window.add(obs[3], 1, 4.0, obs[4], True, False) == [  # 1 + 0.5 + 0.25 * 4, then the shorter ones
        (1, 0, 2.5, 0.0, 4),
        (2, 1, 3.0, 0.0, 4),
        (3, 1, 4.0, 0.0, 4),
    ]
