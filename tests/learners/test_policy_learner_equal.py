"""A thousand updates of `PolicyLearner` against the same loop in plain PyTorch: rollouts, advantages, epochs, moments.

Both learn from the same rollouts, acted by ours, row by row in the same order. After a thousand updates parameters and
moments lie within 4e-7 of the plain program's on the eager lane, within 6e-6 on the native one, relative to the largest
of each; allowed is 5e-5.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hotloop.lanes.compiling import compiler_problem
from hotloop.learners.policy_learner import PolicyLearner
from hotloop.maths.action_kernels import shuffle
from tests.learners.plain_loops import FEATURES, OneTorso, PlainPPO, SlabRollout, TwoTorsos, made
from tests.oracles.gae_oracle import gae_one_env

STEPS, ENVS, BATCH, EPOCHS, ROLLOUTS = 32, 4, 16, 5, 25  # 8 minibatches x 5 epochs x 25 rollouts: 1,000 updates
ALLOWED = 5e-5
VARIANTS = {  # module, outputs, continuous, masked, settings
    "two torsos, discrete, masked": (TwoTorsos, 4, False, True, {"ent_coef": 0.01}),
    "one torso, continuous": (OneTorso, 2, True, False, {"ent_coef": 0.001}),
    "one torso, discrete": (OneTorso, 4, False, False, {}),
    "two torsos, continuous": (TwoTorsos, 2, True, False, {}),
}

PROBLEM = compiler_problem()


class Pair:
    """The learner and the plain program, from the same weights."""

    def __init__(self, variant: str, lane: str) -> None:
        module, outputs, self.continuous, masked, settings = VARIANTS[variant]
        network = made(module, outputs, self.continuous)
        self.plain = PlainPPO(network, 1e-3, 0.2, settings.get("ent_coef", 0.0), 0.5)
        action = (outputs,) if self.continuous else None
        self.learner = PolicyLearner(
            network, 1e-3, action=action, n_epochs=EPOCHS, batch_size=BATCH, lane=lane, **settings
        )
        self.action_shape, self.masked = action or (), outputs if masked else 0

    def rollout_and_update(self, seed: int) -> None:
        rollout = SlabRollout(STEPS, ENVS, self.action_shape, self.masked, seed).fill(self.learner)
        last = np.random.default_rng(seed + 1000).normal(size=(ENVS, FEATURES)).astype(np.float32)
        order = np.empty((EPOCHS, STEPS * ENVS), np.int64)
        shuffle(np.array([self.learner.state_dict()["shuffler"]], np.uint64), order)
        rows = self.rows(rollout, last)
        stats = self.learner.update(rollout, last)
        assert (stats.updates, rollout.full) == (order.size // BATCH, False)
        for epoch in order:
            self.plain.update(rows, epoch, BATCH)

    @torch.no_grad()
    def rows(self, rollout, last):
        values = lambda obs: self.plain.network(torch.from_numpy(obs))[1].reshape(-1).numpy()  # noqa: E731
        final = values(rollout.final_obs().reshape(-1, FEATURES)).reshape(STEPS, ENVS)
        columns = (rollout.reward, rollout.value, values(last), final, rollout.terminated, rollout.truncated)
        advantage = np.array(
            [gae_one_env(*(part.T[n] for part in columns), 0.99, 0.95) for n in range(ENVS)], np.float32
        ).T
        mask = rollout.action_mask
        return (
            torch.from_numpy(rollout.obs.reshape(-1, FEATURES)),
            torch.from_numpy(rollout.action.reshape(STEPS * ENVS, *self.action_shape)),
            torch.from_numpy(advantage.reshape(-1)),
            torch.from_numpy((advantage + rollout.value).reshape(-1)),
            None if mask is None else torch.from_numpy(mask.reshape(STEPS * ENVS, -1)),
            torch.from_numpy(rollout.log_prob.reshape(-1).copy()),
        )

    def apart(self) -> dict[str, float]:
        state, moments = self.learner.state_dict(), self.plain.optimizer.state
        named = dict(self.plain.network.named_parameters())
        expected = {
            "network": {name: one.detach() for name, one in named.items()},
            "mean": {name: moments[one]["exp_avg"] for name, one in named.items()},
            "square": {name: moments[one]["exp_avg_sq"] for name, one in named.items()},
        }
        found = {}
        for what, parts in expected.items():
            largest = max(part.abs().max() for part in parts.values())
            found[what] = float(max((state[what][name] - part).abs().max() for name, part in parts.items()) / largest)
        return found


def check(variant: str, lane: str) -> None:
    pair = Pair(variant, lane)
    for seed in range(ROLLOUTS):
        pair.rollout_and_update(seed)
    assert (pair.learner.lane, pair.learner.updates) == (lane, 1_000)
    apart = pair.apart()
    assert max(apart.values()) < ALLOWED, apart


FIRST, SECOND = [*VARIANTS][:2]


@pytest.mark.parametrize(("variant", "lane"), [(FIRST, "native"), (SECOND, "native"), (SECOND, "eager")])
def test_a_thousand_updates_are_those_of_plain_pytorch(variant, lane):
    check(variant, lane)


OTHERS = [(FIRST, "eager"), *((variant, lane) for variant in [*VARIANTS][2:] for lane in ("eager", "native"))]


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "lane"), OTHERS)
def test_the_other_variants(variant, lane):
    check(variant, lane)


@pytest.mark.skipif(PROBLEM != "", reason=f"compiled lane: {PROBLEM}")
@pytest.mark.slow
@pytest.mark.parametrize("variant", [*VARIANTS][:2])
def test_the_compiled_lane_too(variant):
    check(variant, "compiled")
