"""The slab that an on-policy iteration fills."""

from __future__ import annotations

import numpy as np

from hotloop.core.types import ArraySpec, EnvStep, RolloutRow
from hotloop.maths.distributions import ActionLayout
from hotloop.replay.rollout_buffer import RolloutBuffer
from tests.loop.scripted_envs import ScriptedEnvs

LAYOUT = ActionLayout((2,))


def buffer(steps: int, num_envs: int, mask_width: int | None = None) -> RolloutBuffer:
    return RolloutBuffer((steps, num_envs), ArraySpec((2,)), LAYOUT, mask_width)


def row(num_envs: int, value: float, mask: np.ndarray | None = None) -> RolloutRow:
    """What a policy says whose numbers are `value` and some tens more."""
    parts = (np.full((num_envs, 2), value), np.full((num_envs, 2), value + 10), np.full(num_envs, value + 20))
    return RolloutRow(*parts, np.full((num_envs, 1), value + 30), mask)


def played(lengths: list[list[int]], steps: int, **more: bool) -> tuple[RolloutBuffer, list[EnvStep]]:
    envs, rollout, seen = ScriptedEnvs(lengths, **more), buffer(steps, len(lengths)), []
    envs.reset()
    while not rollout.full:
        seen.append(envs.step(np.zeros(len(lengths), np.int64)))
        rollout.add(row(len(lengths), 0), seen[-1])
    return rollout, seen


def test_steps_lie_in_time_order_and_the_slab_is_full_after_all_of_them():
    rollout, steps = played([[2], [3]], 6)
    data = rollout.data
    np.testing.assert_array_equal(data.terminated, [step.terminated for step in steps])
    np.testing.assert_array_equal(data.truncated, [step.truncated for step in steps])
    np.testing.assert_array_equal(data.reward, np.ones((6, 2)))
    np.testing.assert_array_equal(data.weight, np.ones((6, 2)))


def test_time_outs_are_remembered_with_what_their_last_action_led_to():
    rollout, _ = played([[2], [3]], 6)  # env 0 terminates, env 1 is truncated after three steps
    steps, envs, final_obs = rollout.timeouts()
    assert (steps.tolist(), envs.tolist()) == ([2, 5], [1, 1])
    assert final_obs.tolist() == [[0.0, 3.0], [1.0, 3.0]]  # turn and age


def test_a_rollout_without_time_outs_has_none():
    rollout, _ = played([[2]], 4)
    assert rollout.timeouts() is None


def test_rows_that_only_reset_have_no_weight():
    rollout, steps = played([[2], [3]], 6, resets_take_a_step=True)
    np.testing.assert_array_equal(rollout.data.weight, [step.valid for step in steps])
    assert rollout.data.weight.min() == 0.0


def test_what_the_policy_returns_with_its_action_is_in_the_slab():
    rollout = buffer(3, 2, mask_width=2)
    for t in range(3):
        acted = row(2, t, np.array([[True, t % 2 == 0]] * 2))
        rollout.add(acted, EnvStep(acted.obs, np.zeros(2, np.float32), *np.zeros((2, 2), np.bool_), acted.obs))
    data = rollout.data
    assert data.obs[:, 0, 0].tolist() == [0, 1, 2]
    assert data.outputs[:, 1, 1].tolist() == [10, 11, 12]
    assert data.value[:, 0].tolist() == [20, 21, 22, 0]  # the last one is the learner's to fill
    assert data.action[:, 1, 0].tolist() == [30, 31, 32]
    assert data.action_mask[:, 0, 1].tolist() == [True, False, True]


def test_clearing_begins_anew_in_the_same_memory():
    rollout, _ = played([[2], [3]], 6)
    place = rollout.data.reward
    rollout.clear()
    assert not rollout.full
    assert rollout.timeouts() is None
    assert rollout.data.reward is place
