"""The plain program of the proofs plays the same game."""

import numpy as np
import pytest

from benchmarks.witnesses.sfc_env import SfcEnv
from hotloop.core.rng import derive_seeds
from hotloop.workloads.sfc.env import Sfc
from tests.oracles.snake_oracle import splitmix_tape


@pytest.mark.parametrize(("centres", "calls"), [(2, 900), (4, 500), (6, 60), (8, 6)])
def test_the_plain_program_agrees_on_the_same_tape(centres, calls):
    seeds = derive_seeds(5, 1, "env")
    ours = Sfc(1, seeds, min_data_centres=centres, max_data_centres=centres, min_request_count=2, max_request_count=2)
    plain = SfcEnv(splitmix_tape(int(seeds[0])), dcs=(centres, centres), request_counts=(2, 2))
    obs, mask = ours.reset()
    state, draw = plain.reset(), np.random.default_rng(3)
    for _ in range(calls):
        for part, expected in zip(obs.values(), state, strict=True):
            np.testing.assert_array_equal(part[0], expected)
        np.testing.assert_array_equal(mask[0], plain.action_mask())
        weight = np.array([1.0] * 6 + [0.15] * 6 + [0.05]) * (mask[0] | (draw.random(13) < 0.05))
        action = int(draw.choice(13, p=weight / weight.sum()))
        step = ours.step(np.array([action]))
        state, reward, done = plain.step(action)
        assert (step.reward[0], step.terminated[0]) == (reward, done)
        obs, mask = step.obs, step.action_mask
    counts = ours.get_state()
    assert (counts["satisfied"].sum(), counts["dropped"].sum()) == (plain.satisfied, plain.dropped)
    assert plain.satisfied > 0 or calls < 100
