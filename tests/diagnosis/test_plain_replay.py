"""What the experiment about storing stores into is what the plain program has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.witnesses import snake_dqn
from hotloop.diagnosis import plain_replay


@pytest.mark.parametrize("form", ["push_one_by_one", "push_batch"])
def test_it_stores_what_the_plain_program_stores(form):
    fields = (
        torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        torch.tensor([2, 0, 1]),
        torch.tensor([0.5, -10.0, 1.0]),
        torch.tensor([[5.0, 6.0], [7.0, 8.0], [9.0, 0.0]]),
        torch.tensor([False, True, False]),
    )
    ours, plain = plain_replay.PlainReplay(2), snake_dqn.ReplayBuffer(2)
    getattr(plain_replay, form)(ours, *fields)
    getattr(snake_dqn, form)(plain, *fields)
    assert len(ours.buffer) == len(plain.buffer) == 2
    for mine, theirs in zip(ours.buffer, plain.buffer, strict=True):
        assert list(map(type, mine)) == list(map(type, theirs))
        assert all(np.array_equal(left, right) for left, right in zip(mine, theirs, strict=True))
