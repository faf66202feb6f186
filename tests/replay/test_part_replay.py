"""The public replay: against rows worked out by definition, with every kind of value, and with every wrong one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

import hotloop
from hotloop.core.errors import CheckpointError, HotloopError, NonFiniteError
from tests.oracles.plain_replay import PlainReplay, Step


def rows_of(replay):
    """Every stored row (obs, action, reward, discount, next_obs) by its index, from draws."""
    found = {}
    for _ in range(200):
        batch = replay.sample(min(len(replay), 16))
        columns = (batch.obs[:, 0], batch.action, batch.reward, batch.discount, batch.next_obs[:, 0])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        found |= dict(zip(batch.index.tolist(), rows, strict=True))
        if len(found) == len(replay):
            break
    return found


events = st.sampled_from(["", "", "", "terminated", "truncated", "both", "reset"])


@given(
    st.lists(st.lists(events, min_size=3, max_size=3), min_size=1, max_size=30),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([5, 12, 100]),
    st.booleans(),
)
def test_rows_are_those_of_the_definition(history, num_envs, n_step, capacity, prioritized):
    """Termination, time-outs, both at once, rows that are not valid, and more rows than there is room for."""
    replay = hotloop.Replay(capacity, obs=(1,), num_envs=num_envs, n_step=n_step, gamma=0.5, prioritized=prioritized)
    plain = PlainReplay(capacity, num_envs, n_step, 0.5)
    for t, what in enumerate(history):
        what = what[:num_envs]
        seen = np.arange(num_envs, dtype=np.float32)[:, None] * 100 + t
        terminated = np.array([event in ("terminated", "both") for event in what])
        truncated = np.array([event in ("truncated", "both") for event in what])
        valid = np.array([event != "reset" for event in what])
        reward = np.arange(num_envs) + float(t)
        replay.add(seen, np.full(num_envs, t), reward, seen + 1, terminated, truncated, valid=valid)
        columns = zip(seen[:, 0], reward, terminated, truncated, valid, strict=True)
        plain.add([Step(o, t, r, o + 1, te, tr) if ok else None for o, r, te, tr, ok in columns])
    assert len(replay) == len(plain.rows)
    if plain.rows:
        assert sorted(rows_of(replay).values()) == sorted(tuple(row) for row in plain.rows)


@given(st.lists(events, min_size=1, max_size=30), st.integers(1, 2), st.sampled_from([5, 100]), st.booleans())
def test_single_transitions_are_those_of_the_definition_too(history, n_step, capacity, prioritized):
    """As a loop over one env adds them: a vector of float32, and plain numbers."""
    replay = hotloop.Replay(capacity, obs=(2,), n_step=n_step, gamma=0.5, prioritized=prioritized)
    plain = PlainReplay(capacity, 1, n_step, 0.5)
    for t, event in enumerate(history):
        seen, after = np.array([t, -t], np.float32), np.array([t + 1, 0], np.float32)
        ended = event in ("terminated", "both"), event in ("truncated", "both")
        assert replay.add(seen, np.int64(t), float(t), after, *ended) >= 0
        seen[:], after[:] = 99, 99
        plain.add([Step(t, t, t, t + 1, *ended)])
    assert len(replay) == len(plain.rows)
    if plain.rows:
        assert sorted(rows_of(replay).values()) == sorted(tuple(row) for row in plain.rows)


@pytest.mark.parametrize("odd", ["read-only", "strided", "double", "big-endian"])
@pytest.mark.parametrize("num_envs", [1, 2])
def test_arrays_of_every_make_are_taken(odd, num_envs):
    whole = np.arange(4.0 * num_envs, dtype=np.float32)
    made = {"strided": whole[::2], "double": whole[::2].astype(np.float64), "big-endian": whole[::2].astype(">f4")}
    seen = made.get(odd, whole[::2].copy()).reshape((2,) if num_envs == 1 else (2, 2))
    seen.flags.writeable = odd != "read-only"
    replay = hotloop.Replay(10, obs=(2,), num_envs=num_envs)
    never = np.zeros(num_envs, bool)
    replay.add(seen, np.zeros(num_envs, int), np.zeros(num_envs), seen, never, never)
    replay.add(seen, 0, 0.0, seen, False, False) if num_envs == 1 else None
    found = replay.sample(1, k=20).obs[:, 0]
    assert {tuple(row) for row in found.tolist()} <= {tuple(row) for row in seen.reshape(-1, 2).tolist()}


def test_a_truncated_step_has_its_discount_and_a_terminated_one_has_none():
    replay = hotloop.Replay(10, obs=(1,), gamma=0.9)
    replay.add([1.0], 0, 1.0, [2.0], terminated=False, truncated=True)
    replay.add([3.0], 1, 1.0, [4.0], terminated=True, truncated=False)
    found = sorted(rows_of(replay).values())
    assert [row[3] for row in found] == [pytest.approx(0.9), 0.0]
    assert [row[4] for row in found] == [2.0, 4.0]


def test_values_are_copied():
    replay = hotloop.Replay(10, obs=(2,), action=(1,), num_envs=2)
    obs, following, action, reward = np.ones((2, 2), np.float32), np.ones((2, 2), np.float32), np.ones((2, 1)), [1, 1]
    flags = np.zeros((2, 2), bool)
    action = action.astype(np.float32)
    replay.add(obs, action, reward, following, *flags)
    for array in (obs, following, action, flags):
        array.fill(True)
        array += array
    batch = replay.sample(2)
    for array in (batch.obs, batch.next_obs, batch.action, batch.reward):
        assert (array == 1).all()
    assert (batch.discount > 0.9).all()


def test_a_batch_is_its_own_and_out_reuses_it():
    replay = hotloop.Replay(100, obs=(3,), seed=1)
    for t in range(50):
        replay.add([t] * 3, 0, t, [t + 1] * 3, False, False)
    first = replay.sample(8)
    kept = first.reward.copy()
    second = replay.sample(8)
    assert (first.reward == kept).all()
    assert not np.shares_memory(first.obs, second.obs)
    memory = first.obs
    first.weight[:] = 7.0
    first.reward = None  # whatever it showed
    again = replay.sample(8, out=first)
    assert again is first
    assert again.obs is not None
    assert np.shares_memory(again.obs, memory)
    assert (again.weight == 1).all()
    assert (again.obs[:, 0] == again.reward).all()
    tensors = again.torch()
    tensors.obs[0, 0] = 99.0
    assert again.obs[0, 0] == 99.0
    assert tensors.index.dtype == torch.int64
    assert again.torch("meta").obs.device.type == "meta"


def test_k_batches_equal_k_single_draws():
    together, apart = (hotloop.Replay(100, obs=(1,), seed=3) for _ in range(2))
    for replay in (together, apart):
        for t in range(50):
            replay.add([t], 0, t, [t + 1], False, False)
    drawn = together.sample(4, k=3)
    assert drawn.obs.shape == (3, 4, 1)
    assert np.array_equal(drawn.index, [apart.sample(4).index for _ in range(3)])


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor, lambda x: torch.tensor(x, requires_grad=True)])
def test_lists_arrays_and_tensors_are_taken(kind):
    replay = hotloop.Replay(10, obs=(2,))
    flag = torch.tensor(True) if kind is torch.tensor else True
    assert replay.add(kind([1.0, 2.0]), np.int32(1), torch.tensor(3.0), kind([4.0, 5.0]), flag, False) == 1
    batch = replay.sample(1)
    assert batch.obs.tolist() == [[1.0, 2.0]]
    assert (batch.action[0], batch.reward[0], batch.discount[0]) == (1, 3.0, 0.0)
    assert batch.next_obs.tolist() == [[4.0, 5.0]]


def test_dicts_images_and_several_choices():
    space = spaces.Dict(
        {"image": spaces.Box(0, 255, (4, 4, 1), np.uint8), "speed": spaces.Box(-1, 1, (2,), np.float64)}
    )
    replay = hotloop.Replay(10, obs=space, action=spaces.MultiDiscrete([3, 2]))
    obs = {"image": np.full((4, 4, 1), 200, np.uint8), "speed": np.array([0.1, 0.2])}
    replay.add(obs, [2, 1], 0.0, obs, False, False)
    batch = replay.sample(1, k=2)
    assert batch.obs["image"].dtype == np.uint8
    assert batch.obs["image"].shape == (2, 1, 4, 4, 1)
    assert (batch.next_obs["image"] == 200).all()
    assert batch.obs["speed"].dtype == np.float32
    assert batch.action.tolist() == [[[2, 1]], [[2, 1]]]
    assert batch.torch().obs["speed"].shape == (2, 1, 2)
    with pytest.raises(HotloopError, match=r"`action` holds 2; expected 0 to 1"):
        replay.add(obs, [2, 2], 0.0, obs, False, False)
    with pytest.raises(HotloopError, match=r"`obs` has parts \['image'\]; expected a dict of \['image', 'speed'\]"):
        replay.add({"image": obs["image"]}, [2, 1], 0.0, obs, False, False)
    with pytest.raises(HotloopError, match=r"`obs\['image'\]` is float64; it is kept as uint8"):
        replay.add(obs | {"image": obs["image"] / 2}, [2, 1], 0.0, obs, False, False)
    assert len(replay) == 1


@pytest.mark.parametrize(
    ("obs", "kept"),
    [(spaces.Discrete(5), 4), (spaces.MultiBinary(2), [1, 0]), (spaces.Box(0, 9, (2,), np.int32), [7, 8]), ((), 0.5)],
)
def test_other_observations_come_back_as_they_were(obs, kept):
    replay = hotloop.Replay(10, obs=obs)
    replay.add(kept, 0, 0.0, kept, False, False)
    batch = replay.sample(1)
    assert batch.obs[0].tolist() == kept
    assert batch.next_obs[0].tolist() == kept


def test_float_actions_through_n_step_windows():
    replay = hotloop.Replay(50, obs=(1,), action=spaces.Box(-1, 1, (2,)), n_step=2, gamma=0.5)
    for t in range(4):
        replay.add([t], [t, -t], 1.0, [t + 1], False, t == 3)
    batch = replay.sample(4, k=8)
    assert batch.action.dtype == np.float32
    assert np.array_equal(batch.action[..., 0], batch.obs[..., 0])
    assert np.array_equal(batch.action[..., 1], -batch.obs[..., 0])


def test_masks_come_back_and_nothing_follows_a_terminated_step():
    replay = hotloop.Replay(10, obs=(1,), num_actions=3, seed=2)
    replay.add([0], 2, 0.0, [1], False, False, next_action_mask=[True, False, True])
    replay.add([1], 2, 0.0, [2], True, False, next_action_mask=np.zeros(3, bool))
    batch = replay.sample(2, k=20)
    for mask, seen in zip(batch.next_action_mask.reshape(-1, 3).tolist(), batch.obs.reshape(-1), strict=True):
        assert mask == ([True, False, True] if seen == 0 else [True, True, True])


def test_priorities_decide_what_is_drawn():
    replay = hotloop.Replay(16, obs=(1,), prioritized=True, alpha=1.0, beta=1.0)
    for t in range(16):
        replay.add([t], 0, 0.0, [t], False, False)
    everything = np.arange(16)
    replay.update_priorities(torch.tensor(everything), torch.where(torch.arange(16) == 5, -100.0, 0.001))
    batch = replay.sample(16, k=10)
    assert (batch.index == 5).mean() > 0.9
    flat = replay.sample(16, k=10, beta=0.0)
    assert (flat.weight == 1.0).all()
    with pytest.raises(HotloopError, match="`index` names a row that the replay does not hold"):
        replay.update_priorities([16], [1.0])
    with pytest.raises(HotloopError, match="`index` is int64"):
        replay.update_priorities([1, 2], [1.0])
    with pytest.raises(NonFiniteError):
        replay.update_priorities([1], [float("nan")])


def test_uniform_replay_ignores_priorities():
    told, left = (hotloop.Replay(16, obs=(1,), seed=5) for _ in range(2))
    for replay in (told, left):
        for t in range(4):
            replay.add([t], 0, t, [t + 1], False, False)
    told.update_priorities([0, 1], [1e6, 1e-6])
    batches = [replay.sample(4, k=16) for replay in (told, left)]
    assert np.array_equal(batches[0].index, batches[1].index)
    assert all((np.asarray(batch.weight) == 1).all() for batch in batches)


@pytest.mark.parametrize("how", [{}, {"prioritized": True, "n_step": 3}, {"action": (2,), "n_step": 2}])
def test_a_saved_replay_goes_on_as_the_one_it_was_saved_from(how, tmp_path):
    def play(replay, start, stop):
        for t in range(start, stop):
            action = [t, t] if "action" in how else t % 2
            replay.add([t], action, t, [t + 1], t % 9 == 8, False)
        batch = replay.sample(4, k=3)
        replay.update_priorities(batch.index, batch.reward)
        return batch

    original, restored = (hotloop.Replay(20, obs=(1,), seed=seed, **how) for seed in (1, 2))
    play(original, 0, 31)
    np.savez(tmp_path / "replay.npz", **original.state_dict())
    play(restored, 500, 507)
    with np.load(tmp_path / "replay.npz") as saved:
        restored.load_state_dict(dict(saved))
    for start in (31, 40, 50):
        ours, theirs = play(original, start, start + 7), play(restored, start, start + 7)
        for name in ("obs", "action", "reward", "discount", "next_obs", "weight", "index"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


def test_a_state_of_another_kind_is_refused():
    plain, other = hotloop.Replay(20, obs=(1,)), hotloop.Replay(20, obs=(1,), prioritized=True)
    with pytest.raises(CheckpointError, match="another kind"):
        other.load_state_dict(plain.state_dict())
    plain.add([1], 5, 0.0, [1], False, False)
    with pytest.raises(CheckpointError, match="none of 2"):
        hotloop.Replay(20, obs=(1,), action=spaces.Discrete(2)).load_state_dict(plain.state_dict())
    with pytest.raises(CheckpointError, match="saved replay rows"):
        hotloop.Replay(20, obs=(2,)).load_state_dict(plain.state_dict())


def test_rows_on_a_disk_are_the_same_rows(tmp_path):
    replays = [hotloop.Replay(20, obs=(1,), **how) for how in ({}, {"memory": "disk", "folder": str(tmp_path)})]
    for t in range(30):
        for replay in replays:
            replay.add([t], 1, t, [t + 1], False, False)
    ours, theirs = (replay.sample(16) for replay in replays)
    assert np.array_equal(ours.obs, theirs.obs)


GOOD = {"obs": [0.0, 0.0], "action": 1, "reward": 1.0, "next_obs": [0.0, 0.0], "terminated": False, "truncated": False}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"obs": [0.0] * 3}, r"`obs` has shape \(3,\); expected \(2,\), or \(1, 2\)"),
        ({"next_obs": np.zeros((2, 2))}, r"`next_obs` has shape \(2, 2\)"),
        ({"obs": [2**24 + 1, 0]}, "`obs` is int64; it is kept as float32"),
        ({"obs": [0.0, float("nan")]}, "`obs` holds nan; expected finite numbers"),
        ({"obs": np.array([0.0, np.inf], np.float32)}, "`obs` holds inf"),
        ({"obs": [0.0, 1e300]}, r"`obs` holds 1e\+300"),
        ({"obs": ["a", "b"]}, "`obs` is of type list; expected numbers"),
        ({"obs": [[1.0], [1.0, 2.0]]}, "`obs` is no array"),
        ({"obs": None}, "`obs` is None; expected numbers"),
        ({"action": 1.0}, "`action` is float64; it is kept as int64"),
        ({"action": torch.tensor(1.0)}, "`action` is float32; it is kept as int64"),
        ({"action": -1}, "`action` holds -1; expected 0 to 2"),
        ({"action": 3}, "`action` holds 3; expected 0 to 2"),
        ({"action": np.int32(3)}, "`action` holds 3; expected 0 to 2"),
        ({"action": [1, 1]}, r"`action` has shape \(2,\)"),
        ({"reward": float("nan")}, "`reward` holds nan"),
        ({"reward": float("inf")}, "`reward` holds inf"),
        ({"reward": None}, "`reward` is None"),
        ({"reward": 2**40}, "`reward` is int64; it is kept as float32"),
        ({"terminated": 1.0}, "`terminated` is float64; it is kept as bool"),
        ({"truncated": 2}, "`truncated` is int64; it is kept as bool"),
        ({"valid": [True, True]}, r"`valid` has shape \(2,\)"),
        ({"next_action_mask": [True]}, "the replay keeps none"),
    ],
)
def test_a_wrong_value_is_named_in_one_sentence_and_nothing_is_stored(wrong, words):
    replay = hotloop.Replay(10, obs=(2,), action=spaces.Discrete(3))
    with pytest.raises(ValueError, match=words) as caught:
        replay.add(**{**GOOD, **wrong})
    assert isinstance(caught.value, HotloopError)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    assert len(replay) == 0
    assert replay.add(**GOOD) == 1


@pytest.mark.parametrize("wrong", [2**63, 10**30])
def test_whole_numbers_too_large_for_any_array_are_refused_too(wrong):
    with pytest.raises(HotloopError, match="`action`"):
        hotloop.Replay(10, obs=(2,)).add(**{**GOOD, "action": wrong})


def test_masks_are_given_always_or_never():
    replay = hotloop.Replay(10, obs=(2,), num_actions=2)
    with pytest.raises(HotloopError, match="`next_action_mask` is missing"):
        replay.add(**GOOD)
    with pytest.raises(HotloopError, match="allows no action"):
        replay.add(**GOOD, next_action_mask=[False, False])
    with pytest.raises(HotloopError, match=r"`next_action_mask` has shape \(3,\)"):
        replay.add(**GOOD, next_action_mask=[True] * 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"buffer_size": 0}, "`buffer_size` is 0"),
        ({"buffer_size": 1e5}, "`buffer_size` is 100000.0"),
        ({"obs": "4"}, "`obs` is '4'"),
        ({"obs": (4, -1)}, "`obs` is -1"),
        ({"obs": {}}, "`obs` is a dict without parts"),
        ({"obs": spaces.Tuple([spaces.Discrete(2)])}, "`obs` is Tuple"),
        ({"action": spaces.Discrete(3, start=1)}, "does not count from 0"),
        ({"action": spaces.Discrete(3), "num_actions": 2}, "`num_actions` is 2"),
        ({"action": (2,), "num_actions": 2}, "`num_actions` is given"),
        ({"num_envs": 0}, "`num_envs` is 0"),
        ({"n_step": 0}, "`n_step` is 0"),
        ({"gamma": 1.5}, "`gamma` is 1.5"),
        ({"gamma": "0.9"}, "`gamma` is '0.9'"),
        ({"alpha": -1}, "`alpha` is -1"),
        ({"seed": -1}, "`seed` is -1"),
        ({"seed": None}, "`seed` is None"),
        ({"memory": "tape"}, "memory"),
        ({"folder": "here"}, "folder"),
        ({"memory": "disk", "folder": "/nowhere/at/all"}, "folder"),
        ({"buffer_size": 10**14}, "needs"),
    ],
)
def test_a_wrong_argument_is_named(arguments, words):
    with pytest.raises(HotloopError, match=words) as caught:
        hotloop.Replay(**{"buffer_size": 10, "obs": (2,)} | arguments)
    assert caught.value.hint


def test_sampling_what_is_not_there_is_refused():
    replay = hotloop.Replay(10, obs=(2,), n_step=2)
    with pytest.raises(HotloopError, match="`batch_size` is 1, but the replay holds 0"):
        replay.sample(1)
    for _ in range(4):
        replay.add(**GOOD)
    assert len(replay) == 3
    with pytest.raises(HotloopError, match="`batch_size` is 4, but the replay holds 3"):
        replay.sample(4)
    for wrong, words in (((0,), "batch_size"), ((2.5,), "batch_size"), ((2, 0), "`k` is 0"), (("2",), "batch_size")):
        with pytest.raises(HotloopError, match=words):
            replay.sample(*wrong)
    with pytest.raises(HotloopError, match="`beta` is given"):
        replay.sample(2, beta=0.5)
    other = replay.sample(3)
    for out in (other, other.torch(), None.__class__, hotloop.Replay(10, obs=(2,))):
        with pytest.raises(HotloopError, match="`out` is no batch of this size and replay"):
            replay.sample(2, out=out)


def test_windows_under_way_can_be_dropped():
    replay = hotloop.Replay(10, obs=(2,), n_step=3)
    replay.add(**GOOD)
    replay.drop_pending()
    replay.add(**GOOD | {"terminated": True})
    assert len(replay) == 1
    assert "1 transitions" in repr(replay)


KINDS = [np.bool_, np.int8, np.uint8, np.int32, np.int64, np.uint64, np.float16, np.float32, np.float64]


@given(
    st.sampled_from(KINDS),
    st.sampled_from([np.float32, np.uint8, np.int64, np.int8]),
    st.lists(st.integers(-(2**40), 2**40) | st.integers(-3, 300), min_size=3, max_size=3),
    st.booleans(),
)
def test_a_number_is_kept_exactly_or_rounded_as_a_float_or_refused(given_as, kept_as, numbers, as_tensor):
    """Whatever the two dtypes: no number comes back as another."""
    handed = np.array(numbers).astype(given_as)
    if as_tensor and given_as is not np.uint64:
        handed = torch.from_numpy(handed)
    replay = hotloop.Replay(
        4, obs=spaces.Box(-1, 1, (3,)) if kept_as is np.float32 else spaces.Box(0, 9, (3,), kept_as)
    )
    try:
        replay.add(handed, 0, 0.0, handed, False, False)
    except HotloopError:
        assert len(replay) == 0
        return
    found = replay.sample(1).obs[0]
    rounds = np.issubdtype(given_as, np.floating)
    right = np.asarray(handed).astype(np.float32) if rounds else np.asarray(handed)
    assert found.dtype == kept_as
    assert [float(number) for number in found] == [float(number) for number in right]
