"""The public rollout: what is added is what is there, time-outs keep their last observation, and wrong values are
named."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

import hotloop
from hotloop import Note
from hotloop.core.errors import HotloopError


def filled(steps=4, num_envs=2, **how):
    """Obs 10 t + env, final obs 100 more, reward t, value 2 t, log-probability -t; env 1 is cut off at step 1, env 0
    terminates at step 2."""
    rollout = hotloop.Rollout(steps, num_envs, obs=(1,), num_actions=3, **how)
    for t in range(steps):
        seen = 10.0 * t + np.arange(num_envs)[:, None]
        note = Note(torch.full((num_envs,), -float(t), requires_grad=True), np.full(num_envs, 2.0 * t))
        flags = [env == 0 and t == 2 for env in range(num_envs)], [env == 1 and t == 1 for env in range(num_envs)]
        rollout.add(seen, [t % 3] * num_envs, note, [t] * num_envs, *flags, seen + 100)
    return rollout


def test_what_was_added_is_there_time_major():
    rollout = filled()
    assert rollout.full
    assert len(rollout) == 4
    assert rollout.obs[:, :, 0].tolist() == [[0, 1], [10, 11], [20, 21], [30, 31]]
    assert rollout.action.tolist() == [[0, 0], [1, 1], [2, 2], [0, 0]]
    assert rollout.reward[:, 1].tolist() == [0, 1, 2, 3]
    assert rollout.value[:, 0].tolist() == [0, 2, 4, 6]
    assert rollout.log_prob[:, 0].tolist() == [0, -1, -2, -3]
    assert rollout.terminated[:, 0].tolist() == [False, False, True, False]
    assert rollout.truncated[:, 1].tolist() == [False, True, False, False]
    assert (rollout.weight == 1).all()
    assert rollout.action_mask is None


def test_time_outs_keep_their_final_observation():
    steps, envs, final_obs = filled().timeouts()
    assert (steps.tolist(), envs.tolist(), final_obs.tolist()) == ([1], [1], [[111]])


def test_the_next_value_is_of_what_the_action_led_to():
    rollout = filled()
    following = rollout.next_value(lambda obs: torch.from_numpy(obs)[:, 0] + 0.5, np.array([[40.0], [41.0]]))
    # env 0: the values of the next steps, then of the last observation; its terminated step counts nowhere
    assert following[:, 0].tolist() == [2, 4, 6, 40.5]
    assert following[:, 1].tolist() == [2, 111.5, 6, 41.5]
    advantage, _ = hotloop.gae(
        rollout.reward, rollout.value, following, rollout.terminated, rollout.truncated, gamma=0.5, gae_lambda=0.0
    )
    assert advantage[1].tolist() == [1 + 0.5 * 4 - 2, 1 + 0.5 * 111.5 - 2]
    assert advantage[2, 0] == 2 - 4
    with pytest.raises(HotloopError, match="`value_of` answered with shape"):
        rollout.next_value(lambda obs: np.zeros((len(obs), 2)), np.zeros((2, 1)))


def test_clearing_begins_anew_without_time_outs():
    rollout = filled()
    with pytest.raises(HotloopError, match="the rollout is full, with 4 steps"):
        rollout.add([[0.0]] * 2, [0, 0], ([0, 0], [0, 0]), [0, 0], [False] * 2, [False] * 2, [[0.0]] * 2)
    rollout.clear()
    assert (len(rollout), rollout.full, rollout.timeouts()) == (0, False, None)
    with pytest.raises(HotloopError, match="the rollout has 0 of 4 steps"):
        rollout.next_value(lambda obs: obs, [[0.0]] * 2)


def test_values_are_copied():
    rollout = hotloop.Rollout(1, 2, obs=(1,), action=(1,))
    arrays = [np.ones(shape, np.float32) for shape in ((2, 1), (2, 1), (2,), (2,), (2,), (2, 1))]
    obs, action, log_prob, value, reward, final_obs = arrays
    flags = np.array([[False, False], [True, True]])
    rollout.add(obs, action, (log_prob, value), reward, *flags, final_obs)
    for array in arrays:
        array += 1
    flags[...] = ~flags
    kept = (rollout.obs, rollout.action, rollout.log_prob, rollout.value, rollout.reward, rollout.timeouts()[2])
    assert all((array == 1).all() for array in kept)
    assert rollout.truncated.all()
    assert not rollout.terminated.any()


def test_masks_dicts_images_and_rows_that_do_not_count():
    space = spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8), "speed": spaces.Box(-1, 1, (1,))})
    rollout = hotloop.Rollout(2, 1, obs=space, action=spaces.MultiDiscrete([2, 3]))
    obs = {"image": np.full((2, 2), 9, np.uint8), "speed": [0.5]}
    mask = [True, False, True, True, False]
    for t in range(2):
        rollout.add(obs, [0, 1], (0.0, 0.0), 0.0, False, True, obs, valid=t == 0, action_mask=mask)
    assert rollout.obs["image"].dtype == np.uint8
    assert rollout.action_mask.tolist() == [[mask], [mask]]
    assert rollout.weight.tolist() == [[1], [0]]
    assert rollout.timeouts()[2]["image"].shape == (2, 2, 2)
    rollout.clear()
    rollout.add(obs, [0, 1], (0.0, 0.0), 0.0, False, False, obs)
    assert rollout.action_mask is None
    with pytest.raises(HotloopError, match="`action_mask` is given at some steps only"):
        rollout.add(obs, [0, 1], (0.0, 0.0), 0.0, False, False, obs, action_mask=mask)


def test_float_actions_keep_their_shape():
    rollout = hotloop.Rollout(1, 3, obs=(1,), action=spaces.Box(-1, 1, (2, 2)))
    action = torch.arange(12.0).reshape(3, 2, 2)
    rollout.add([[0]] * 3, action, ([0] * 3, [0] * 3), [0] * 3, [False] * 3, [False] * 3, [[0]] * 3)
    assert rollout.action[0].tolist() == action.tolist()


GOOD = {"obs": [[0.0]] * 2, "action": [0, 1], "note": ([0.0, 0.0], [0.0, 0.0]), "reward": [0.0, 0.0]}
GOOD |= {"terminated": [False] * 2, "truncated": [False] * 2, "final_obs": [[0.0]] * 2}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"obs": [0.0, 0.0]}, r"`obs` has shape \(2,\); expected \(2, 1\)"),
        ({"final_obs": None}, "`final_obs` is None"),
        ({"action": [0, 3]}, "`action` holds 3; expected 0 to 2"),
        ({"action": [0.0, 1.0]}, "`action` is float64"),
        ({"note": None}, "`note` is of type NoneType; expected log-probability and value"),
        ({"note": ([0.0], [0.0, 0.0])}, r"`log_prob` has shape \(1,\)"),
        ({"note": ([0.0, 0.0], [0.0, np.nan])}, "`value` holds nan"),
        ({"reward": 1.0}, r"`reward` has shape \(\)"),
        ({"terminated": [0.5, 0.0]}, "`terminated` is float64"),
        ({"action_mask": [[True] * 3, [False] * 3]}, "`action_mask` allows no action"),
        ({"action_mask": [[True] * 2] * 2}, r"`action_mask` has shape \(2, 2\)"),
    ],
)
def test_a_wrong_value_is_named_and_nothing_is_added(wrong, words):
    rollout = hotloop.Rollout(2, 2, obs=(1,), num_actions=3)
    with pytest.raises(HotloopError, match=words):
        rollout.add(**{**GOOD, **wrong})
    assert len(rollout) == 0
    rollout.add(**GOOD)
    assert "1 out of 2 steps" in repr(rollout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_steps": 0}, "`num_steps` is 0"),
        ({"num_envs": 2.0}, "`num_envs` is 2.0"),
        ({"num_actions": None}, "`action` is missing"),
        ({"num_actions": 0}, "`num_actions` is 0"),
    ],
)
def test_a_wrong_argument_is_named(arguments, words):
    with pytest.raises(HotloopError, match=words):
        hotloop.Rollout(**{"num_steps": 2, "num_envs": 2, "obs": (1,), "num_actions": 2} | arguments)


def test_numbers_have_no_masks():
    rollout = hotloop.Rollout(2, 1, obs=(1,), action=(2,))
    with pytest.raises(HotloopError, match="masks are of choices"):
        rollout.add([0], [0.0, 0.0], (0.0, 0.0), 0.0, False, False, [0], action_mask=[True, True])
