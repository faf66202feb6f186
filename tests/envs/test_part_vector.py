"""`hotloop.vector`: what Gymnasium's own vector env does, step by step; also in workers, of classes and of ours."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import vector as wrappers

import hotloop
from hotloop.core.errors import HotloopError


def theirs(env_id, num_envs, **options):
    make = lambda: gymnasium.make(env_id, **options)  # noqa: E731
    return SyncVectorEnv([make] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)


def same(ours, other):
    """Infos, entry by entry; nested dicts, arrays of numbers, arrays of objects."""
    assert ours.keys() == other.keys()
    for name, value in other.items():
        if isinstance(value, dict):
            same(ours[name], value)
        elif value.dtype == object:
            for mine, their in zip(ours[name], value, strict=True):
                assert (mine is None) == (their is None)
                assert mine is None or np.array_equal(mine, their)
        else:
            assert np.array_equal(ours[name], value), name


def play_both(ours, other, steps, seed=3):
    """Random actions into both, every answer compared; how many episodes ended."""
    (obs, info), (expected, expected_info) = ours.reset(seed=seed), other.reset(seed=seed)
    assert np.array_equal(obs, expected)
    same(info, expected_info)
    draw, ends = np.random.default_rng(1), 0
    for _ in range(steps):
        action = draw.integers(other.single_action_space.n, size=ours.num_envs)
        answer, right = ours.step(action), other.step(action)
        for mine, their in zip(answer[:4], right[:4], strict=True):
            assert np.array_equal(mine, np.asarray(their, mine.dtype))
        same(answer[4], right[4])
        ends += int((answer[2] | answer[3]).sum())
    ours.close()
    other.close()
    return ends


def test_it_plays_what_gymnasiums_own_vector_env_plays():
    ours = hotloop.vector("CartPole-v1", 4, max_episode_steps=30)
    assert isinstance(ours, VectorEnv)
    assert ours.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    other = theirs("CartPole-v1", 4, max_episode_steps=30)
    assert ours.single_observation_space == other.single_observation_space
    assert ours.observation_space == other.observation_space
    assert ours.action_space == other.action_space
    assert play_both(ours, other, 150) > 10


def test_infos_masks_and_one_hot_states():
    """An env that says what is allowed in `info`, and whose state is partly a number."""
    ours = hotloop.vector(Corridor, 3, max_episode_steps=4)
    limited = lambda: gymnasium.wrappers.TimeLimit(Corridor(), 4)  # noqa: E731
    other = SyncVectorEnv([limited] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    obs, info = ours.reset()
    expected, expected_info = other.reset()
    ends = 0
    for t in range(30):
        assert obs["way"].argmax(axis=1).tolist() == expected["way"].tolist()
        assert np.array_equal(obs["at"], expected["at"])
        their_rows, rows = expected_info.pop("final_obs", [None] * 3), info.pop("final_obs", [None] * 3)
        for row, their_row in zip(rows, their_rows, strict=True):
            assert (row is None) == (their_row is None)
            assert row is None or np.array_equal(row["at"], their_row["at"])
            assert row is None or row["way"].argmax() == their_row["way"]
        same(info, expected_info)
        action = np.array([1, t % 2, 0])
        obs, _, terminated, truncated, info = ours.step(action)
        expected, _, _, _, expected_info = other.step(action + 5)
        ends += int((terminated | truncated).sum())
    assert ends > 10
    ours.close()
    other.close()


@pytest.mark.parametrize(
    "wrap",
    [
        wrappers.RecordEpisodeStatistics,
        wrappers.NormalizeReward,
        lambda envs: wrappers.ClipReward(envs, -0.5, 0.5),
        lambda envs: wrappers.TransformAction(envs, lambda action: 1 - action, envs.action_space),
    ],
    ids=["statistics", "rewards", "clip", "actions"],
)
def test_gymnasiums_wrappers_work_on_it(wrap):
    ours, other = wrap(hotloop.vector("CartPole-v1", 3)), wrap(theirs("CartPole-v1", 3))
    (obs, _), (expected, _) = ours.reset(seed=7), other.reset(seed=7)
    np.testing.assert_allclose(obs, expected, rtol=1e-5, atol=1e-6)
    for t in range(60):
        answer, right = ours.step(np.array([t % 2, 1, 0])), other.step(np.array([t % 2, 1, 0]))
        for mine, their in zip(answer[:4], right[:4], strict=True):
            np.testing.assert_allclose(mine, their, rtol=1e-4, atol=1e-5)
        assert answer[4].keys() == right[4].keys()
        led_to = [hotloop.final_obs(obs, info) for obs, *_, info in (answer, right)]
        np.testing.assert_allclose(*led_to, rtol=1e-5, atol=1e-6)
        if "episode" in right[4]:
            assert answer[4]["episode"]["r"].tolist() == right[4]["episode"]["r"].tolist()
    ours.close()
    other.close()


def test_workers_play_the_same():
    ours, other = hotloop.vector("CartPole-v1", 4, workers=2, seed=5), hotloop.vector("CartPole-v1", 4, seed=5)
    assert np.array_equal(ours.reset(seed=5)[0], other.reset()[0])
    for t in range(40):
        answer, right = ours.step([t % 2] * 4), other.step([t % 2] * 4)
        assert all(np.array_equal(mine, their) for mine, their in zip(answer[:4], right[:4], strict=True))
        assert np.array_equal(hotloop.final_obs(answer[0], answer[4]), hotloop.final_obs(right[0], right[4]))
        assert {name for name in right[4] if "obs" in name} == {name for name in answer[4] if "obs" in name}
    ours.close()
    other.close()


@pytest.mark.parametrize(
    ("name", "module", "options"), [("snake", "snake", {}), ("hotloop/SFC-v0", "sfc", {"max_episode_steps": 50})]
)
def test_ours_play_what_they_play_through_gymnasium(name, module, options):
    registered = {"snake": "Snake", "sfc": "SFC"}[module]
    whole_id = f"hotloop.workloads.{module}.gymnasium_env:hotloop/{registered}-v0"
    ours, other = hotloop.vector(name, num_envs=3, **options), gymnasium.make_vec(whole_id, num_envs=3, **options)
    obs, info = ours.reset(seed=11)
    expected, expected_info = other.reset(seed=11)
    ends = 0
    for t in range(300):
        parts = zip(
            *((seen if isinstance(seen, dict) else {"": seen}).values() for seen in (obs, expected)), strict=True
        )
        assert all(np.array_equal(mine, their) for mine, their in parts)
        rows = info.pop("final_obs", ()), expected_info.pop("final_obs", ())
        assert [row is None for row in rows[0]] == [row is None for row in rows[1]]
        final = info.pop("final_info", {}), expected_info.pop("final_info", {})
        assert final[0].keys() == final[1].keys()
        same(info, expected_info)
        mask = info.get("action_mask", np.ones((3, ours.single_action_space.n), bool))
        action = np.array([np.flatnonzero(row)[t % row.sum()] for row in mask])
        obs, reward, terminated, truncated, info = ours.step(action)
        expected, expected_reward, _, _, expected_info = other.step(action)
        assert np.array_equal(reward, expected_reward)
        ends += int((terminated | truncated).sum())
    assert ends
    ours.close()
    other.close()


class Corridor(gymnasium.Env):
    """Some steps to the right; actions count from 5."""

    def __init__(self, width=3):
        self.observation_space = spaces.Dict({"at": spaces.Box(0, 9, (1,), np.float64), "way": spaces.Discrete(2)})
        self.action_space = spaces.Discrete(2, start=5)
        self.width = width

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self._seen(), self._said()

    def step(self, action):
        assert action in (5, 6)
        self.at += int(action) - 5
        return self._seen(), 1.0, self.at == self.width, False, self._said() | {"at": self.at}

    def _said(self):
        return {"lives": 1, "action_mask": np.array([True, self.at < self.width])}

    def _seen(self):
        return {"at": np.array([self.at], np.float64), "way": self.at % 2}


ONLY_ONE = Corridor()


@pytest.mark.parametrize("env", [Corridor, lambda width: Corridor(width)], ids=["class", "factory"])
def test_classes_and_factories(env):
    envs = hotloop.vector(env, 2, max_episode_steps=4, width=2)
    assert envs.single_action_space == spaces.Discrete(2)
    assert envs.single_observation_space["way"] == spaces.Box(0.0, 1.0, (2,), np.float32)
    assert envs.single_observation_space["at"] == spaces.Box(0, 9, (1,), np.float32)
    obs, info = envs.reset()
    assert obs["at"].dtype == np.float32
    assert info["lives"].tolist() == [1, 1]
    envs.step([1, 0])
    obs, _, terminated, truncated, info = envs.step([1, 0])
    assert (terminated.tolist(), truncated.tolist()) == ([True, False], [False, False])
    assert obs["at"][:, 0].tolist() == [0, 0]
    assert info["final_obs"][0]["at"].tolist() == [2.0]
    assert info["final_obs"][1] is None
    assert info["final_info"]["at"][0] == 2
    assert info["_final_info"].tolist() == [True, False]
    assert hotloop.final_obs(obs, info)["at"][:, 0].tolist() == [2, 0]
    envs.step([0, 0])
    _, _, terminated, truncated, info = envs.step([0, 0])
    assert (terminated.tolist(), truncated.tolist()) == ([False, False], [False, True])
    envs.close()


def test_it_feeds_a_replay_by_its_spaces():
    envs = hotloop.vector(Corridor, 2, max_episode_steps=4)
    replay = hotloop.Replay(100, envs.single_observation_space, envs.single_action_space, num_envs=2, n_step=2)
    obs, _ = envs.reset()
    for _ in range(20):
        following, reward, terminated, truncated, info = envs.step([1, 0])
        replay.add(obs, [1, 0], reward, hotloop.final_obs(following, info), terminated, truncated)
        obs = following
    batch = replay.sample(32, k=4)
    assert (batch.next_obs["at"] >= batch.obs["at"]).all()  # no window reaches over the end of an episode
    assert (batch.discount[batch.next_obs["at"][..., 0] == 3] == 0).all()
    envs.close()


def test_equal_seeds_play_alike_and_a_second_reset_goes_on():
    first, second = (hotloop.vector("cartpole", 3, seed=4) for _ in range(2))
    begun = first.reset()[0]
    assert np.array_equal(begun, second.reset(seed=4)[0])
    assert not np.array_equal(begun, first.reset()[0])
    assert np.array_equal(begun, first.reset(seed=[4, 5, 6])[0])
    assert not np.array_equal(begun, first.reset(seed=5)[0])
    one = hotloop.vector("CartPole-v1", 2)
    assert np.array_equal(one.reset(seed=9)[0], theirs("CartPole-v1", 2).reset(seed=9)[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"env": "CartPole-v7"}, "there is no env `CartPole-v7`"),
        ({"env": 3}, "`env` is 3; expected an id, a class or a function"),
        ({"env": Corridor()}, "`env` is a Corridor already"),
        ({"env": SyncVectorEnv}, "which is a vector env"),
        ({"env": Corridor, "workers": 1}, "`workers` is given, but `env` has no name"),
        ({"env": Corridor, "height": 1}, "`Corridor` could not be made"),
        ({"env": lambda: 3}, "made a int; expected a gymnasium.Env"),
        ({"env": lambda: ONLY_ONE, "num_envs": 2}, "gave the same env twice"),
        ({"env": "durotaxis"}, "graphs of changing size"),
        ({"num_envs": 0}, "`num_envs` is 0"),
        ({"seed": -1}, "`seed` is -1"),
        ({"seed": [1, 2, 3]}, "`seed` has 3 entries for 1 envs"),
        ({"workers": 3}, "workers"),
        ({"env": "cartpole", "workers": 1}, "workers"),
        ({"env": "cartpole", "gravity": 1}, "has no option `gravity`"),
    ],
)
def test_a_wrong_argument_is_named(arguments, words):
    with pytest.raises(HotloopError, match=words) as caught:
        hotloop.vector(**{"env": "CartPole-v1"} | arguments)
    assert caught.value.hint


def test_steps_in_the_wrong_order_and_wrong_actions_are_refused():
    envs = hotloop.vector("CartPole-v1", 2)
    with pytest.raises(HotloopError, match="`step` was called before `reset`"):
        envs.step([0, 0])
    envs.reset()
    for actions, words in (([0, 2], "holds 2; expected 0 to 1"), ([0.0, 1.0], "is float64"), ([0], "has shape")):
        with pytest.raises(HotloopError, match=f"`actions` {words}"):
            envs.step(actions)
    with pytest.raises(HotloopError, match="`options` of `reset`"):
        envs.reset(options={"low": 0})
    envs.close()
    with pytest.raises(HotloopError, match="was closed"):
        envs.reset()
