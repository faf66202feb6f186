"""All lanes compute the same: whole sequences of updates from the same start, held against the eager lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import LaneError, NonFiniteError
from hotloop.core.types import ArraySpec, Batch
from hotloop.learners.dqn import DQNLearner

NUM_ACTIONS, K, ROWS = 3, 6, 8
OBS = ArraySpec((5,))

VARIANTS: dict[str, dict[str, Any]] = {
    "dqn": {"double": False},
    "double": {"double": True},
    "dueling": {"network": {"dueling": True}},
    "c51": {"network": {"atoms": 7, "v_min": -3.0, "v_max": 3.0}},
    "dueling-c51-double": {"double": True, "network": {"atoms": 7, "v_min": -3.0, "v_max": 3.0, "dueling": True}},
    "mse": {"loss": "mse"},
    "no-clipping": {"optimizer": {"max_grad_norm": 0.0}},
    "tight-clipping": {"optimizer": {"max_grad_norm": 0.05}},
    "polyak": {"target": {"tau": 0.1, "every": 1}},
    "tanh": {"network": {"activation": "tanh"}},
    "selu": {"network": {"activation": "selu"}},
    "leaky-relu": {"network": {"activation": "leaky_relu"}},
    "accumulate": {"optimizer": {"accumulate": 2}, "batch_size": ROWS // 2},
    "lr-schedule": {"optimizer": {"lr_schedule": {"kind": "decay", "factor": 0.5, "every": 2, "unit": "updates"}}},
    "deep": {"network": {"hidden": [6, 5, 4]}},
    "linear": {"network": {"hidden": []}},
}


def learner(lane: str, **tree: Any) -> DQNLearner:
    base = {"batch_size": ROWS, "target": {"every": 4}, "learner": {"lane": lane}, "network": {"hidden": [16, 11]}}
    settings = hotloop.preset("cartpole-dqn", **_merged(base, tree))
    return DQNLearner(settings, OBS, NUM_ACTIONS)


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    from hotloop.core.settings import merge

    return merge(base, over)


def batches(seed: int, masked: bool = False) -> Batch:
    rng = np.random.default_rng(seed)
    mask = rng.random((K, ROWS, NUM_ACTIONS)) < 0.6
    mask[..., 0] |= ~mask.any(-1)
    return Batch(
        obs=rng.normal(size=(K, ROWS, 5)).astype(np.float32),
        action=rng.integers(0, NUM_ACTIONS, (K, ROWS)),
        reward=rng.normal(size=(K, ROWS)).astype(np.float32),
        discount=np.where(rng.random((K, ROWS)) < 0.2, 0.0, 0.97).astype(np.float32),
        next_obs=rng.normal(size=(K, ROWS, 5)).astype(np.float32),
        weight=rng.uniform(0.2, 1.0, (K, ROWS)).astype(np.float32),
        index=np.zeros((K, ROWS), np.int64),
        next_action_mask=mask if masked else None,
    )


def run(machine: DQNLearner, calls: int, masked: bool = False) -> tuple[dict[str, Any], Any, Any]:
    stats = None
    for seed in range(calls):
        stats = machine.update(batches(seed, masked))
    assert stats is not None
    return machine.state(), np.asarray(stats.td_error), np.asarray(stats.scalars)


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_native_lane_makes_the_updates_of_the_eager_one(variant: str, masked: bool) -> None:
    eager = run(learner("eager", **VARIANTS[variant]), 5, masked)
    native = run(learner("native", **VARIANTS[variant]), 5, masked)
    for name in ("online", "target"):
        np.testing.assert_allclose(native[0][name], eager[0][name], rtol=2e-4, atol=2e-5, err_msg=name)
    np.testing.assert_allclose(native[1], eager[1], rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(native[2], eager[2], rtol=2e-3, atol=2e-4)


def test_lanes_choose_the_same_actions() -> None:
    obs = np.random.default_rng(1).normal(size=(50, 5)).astype(np.float32)
    mask = np.random.default_rng(2).random((50, NUM_ACTIONS)) < 0.5
    mask[:, 1] |= ~mask.any(1)
    eager, native = learner("eager").lane, learner("native").lane
    for action_mask in (None, mask):
        chosen = native.infer(obs, action_mask, False)[0]
        assert chosen.tolist() == eager.infer(obs, action_mask, False)[0].tolist()


def test_the_module_sees_what_the_native_lane_learned() -> None:
    machine = learner("native")
    run(machine, 1)
    flat = np.concatenate([parameter.detach().numpy().ravel() for parameter in machine.network.parameters()])
    assert np.array_equal(flat, machine.lane.parameters())


def test_one_call_of_k_equals_k_calls_of_one() -> None:
    together, apart = learner("native"), learner("native")
    run(together, 1)
    whole = batches(0)
    for j in range(K):
        part = Batch(
            *(None if (field := getattr(whole, name)) is None else field[j : j + 1] for name in Batch.__slots__)
        )  # type: ignore[arg-type]
        apart.update(part)
    assert np.array_equal(together.lane.parameters(), apart.lane.parameters())


def test_a_restored_lane_goes_on_bit_identically() -> None:
    whole, saved, restored = learner("native"), learner("native"), learner("native", seed=9)
    run(whole, 2)
    run(saved, 1)
    restored.load_state(saved.state())
    restored.update(batches(1))
    assert np.array_equal(whole.lane.parameters(), restored.lane.parameters())


def test_the_native_lane_stops_before_an_update_that_would_spoil_the_weights() -> None:
    machine = learner("native")
    spoiled = batches(0)
    spoiled.reward[2, 3] = np.nan
    with pytest.raises(NonFiniteError, match="update 3 "):
        machine.update(spoiled)
    assert np.isfinite(machine.lane.parameters()).all()


def test_auto_takes_the_native_lane_for_multilayer_networks_and_says_why_not_otherwise() -> None:
    assert learner("auto").choice.name == "native"
    choice = learner("auto", network={"noisy": True}, total_env_steps=1_000).choice
    assert choice.name == "eager"
    assert "noisy" in choice.reason
    assert "repay" in choice.reason


@pytest.mark.parametrize(
    ("tree", "obs", "why"),
    [
        ({"network": {"noisy": True}}, OBS, "noisy"),
        ({}, ArraySpec((6, 6, 2), np.dtype(np.uint8)), "multilayer"),
        ({}, {"a": OBS, "b": OBS}, "multilayer"),
        ({"device": "cuda"}, OBS, "cuda"),
    ],
)
def test_the_native_lane_refuses_by_name_what_it_cannot_do(tree: dict[str, Any], obs: Any, why: str) -> None:
    settings = hotloop.preset("cartpole-dqn", **_merged({"learner": {"lane": "native"}}, tree))
    with pytest.raises(LaneError, match="native lane") as refused:
        DQNLearner(settings, obs, NUM_ACTIONS)
    assert why in refused.value.message
