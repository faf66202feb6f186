from __future__ import annotations

import numpy as np
import pytest

from benchmarks.replay import make_filled_pair, replay_disk_cases
from benchmarks.witnesses.replays import MemmapReplayBuffer


def test_the_plain_program_overwrites_its_oldest_rows(tmp_path):
    buffer = MemmapReplayBuffer(tmp_path, 3, 1)
    for i in (0, 2):
        obs = np.array([[i], [i + 1]], np.float32)
        buffer.add(obs, [i, i + 1], [1.0, 2.0], obs + 1, [False, True])
    assert buffer.action.tolist() == [3, 1, 2]
    assert buffer.gather([0, 1])[3].tolist() == [[4.0], [2.0]]
    assert (buffer.size, buffer.position) == (3, 1)
    assert set(buffer.sample(50)[1].tolist()) == {1, 2, 3}


@pytest.mark.parametrize("case", replay_disk_cases(small=True), ids=lambda case: case.name)
def test_both_programs_are_timed_on_the_same_work(case):
    built = case.build()
    *rows, done = built.plain()
    batch = built.fast()
    assert [part.shape for part in rows] == [
        part[0].shape for part in (batch.obs, batch.action, batch.reward, batch.next_obs)
    ]
    assert done.shape == batch.discount[0].shape
    built.growth().small()


def test_a_filled_pair_holds_the_same_rows():
    replay, buffer = make_filled_pair(1, 1000)
    batch = replay.sample(500, 1, 0)
    assert replay.size == buffer.size == 1000
    assert np.array_equal(batch.obs[0], buffer.gather(batch.index[0])[0])
