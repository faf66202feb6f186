from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import SettingsError
from hotloop.core.types import ArraySpec
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay import memory
from hotloop.replay.buffer import ReplayMemory
from hotloop.replay.layout import make_layout
from hotloop.replay.memory import estimate_bytes
from hotloop.replay.n_step import Returns
from tests.replay.replay_steps import scalar_replay, walk


def continue_and_record(replay: ReplayMemory) -> list[np.ndarray]:
    seen = []
    for start in range(100, 130, 3):
        walk(replay, 3, start)
        batch = replay.sample(4, 2, start)
        seen += [batch.index.copy(), batch.weight.copy(), batch.obs.copy(), batch.reward.copy(), batch.discount.copy()]
        replay.update_priorities(batch.index, batch.reward)
    seen.append(np.concatenate(replay.state()["ring"]["rows"].pieces))
    return seen


@given(
    is_prioritized=st.booleans(), n_step=st.integers(1, 3), before=st.integers(3, 40), capacity=st.sampled_from([7, 30])
)
def test_a_restored_replay_continues_bit_identically(is_prioritized: bool, n_step: int, before: int, capacity: int):
    kind = {"buffer_size": capacity, "prioritized": is_prioritized, "n_step": n_step}
    original = scalar_replay(seed=5, **kind)
    walk(original, before)
    batch = original.sample(4, 1, 0)
    original.update_priorities(batch.index, batch.reward)
    saved = copy.deepcopy(original.state())
    restored = scalar_replay(seed=99, **kind)
    walk(restored, 11, start=500)
    restored.load_state(saved)
    pairs = zip(continue_and_record(original), continue_and_record(restored), strict=True)
    assert all(np.array_equal(left, right) for left, right in pairs)


def test_the_state_holds_only_filled_rows():
    replay = scalar_replay(buffer_size=1000, prioritized=True)
    walk(replay, 5)
    state = replay.state()
    assert [len(piece) for piece in state["ring"]["rows"].pieces] == [5]
    assert len(state["sampler"]["leaves"]) == 5


def test_equal_seeds_draw_equal_rows_and_others_do_not():
    first, second, other = (scalar_replay(seed=seed) for seed in (1, 1, 2))
    for replay in (first, second, other):
        walk(replay, 50)
    drawn = [replay.sample(32, 1, 0).index.tolist() for replay in (first, second, other)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_k_batches_at_once_equal_k_single_ones():
    together, apart = scalar_replay(seed=1), scalar_replay(seed=1)
    walk(together, 50)
    walk(apart, 50)
    singles = [apart.sample(8, 1, 0).index[0].copy() for _ in range(3)]
    assert np.array_equal(together.sample(8, 3, 0).index, singles)


def test_arrays_are_reused_and_few_shapes_are_kept():
    replay = scalar_replay()
    walk(replay, 5)
    assert replay.sample(4, 1, 0) is replay.sample(4, 1, 0)
    for batch_size in range(1, 100):
        replay.sample(batch_size, 1, 0)
    assert len(replay._arrays) <= 8


def test_an_empty_replay_cannot_be_sampled():
    with pytest.raises(ValueError, match="empty"):
        scalar_replay().sample(4, 1, 0)


@pytest.mark.parametrize("is_prioritized", [False, True])
@pytest.mark.parametrize("num_actions", [None, 5])
@pytest.mark.parametrize(
    "spec", [ArraySpec((4,)), ArraySpec((7, 3), np.dtype(np.uint8)), {"a": ArraySpec((3,)), "b": ArraySpec((2, 2))}]
)
def test_memory_is_within_five_per_cent_of_the_estimate(spec, num_actions, is_prioritized):
    settings, returns = ReplaySettings(buffer_size=5000, prioritized=is_prioritized), Returns(3)
    replay = ReplayMemory(settings, spec, 8, returns, 0, num_actions)
    estimate = estimate_bytes(settings, make_layout(spec, num_actions), 8, returns)
    assert abs(replay.num_bytes - estimate) <= 0.05 * estimate


def test_the_estimate_by_hand():
    # 16 for action, reward and discount, 2 x 16 for four floats twice
    assert estimate_bytes(ReplaySettings(buffer_size=1000), make_layout(ArraySpec((4,)), None), 1, Returns()) == 48_000


@pytest.mark.parametrize("is_prioritized", [False, True])
def test_a_replay_that_cannot_fit_is_refused_with_a_capacity_that_does(monkeypatch, is_prioritized):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1_000_000)
    settings, spec = ReplaySettings(buffer_size=10**12, prioritized=is_prioritized), ArraySpec((4,))
    with pytest.raises(SettingsError, match=r"replay\.buffer_size=") as caught:
        ReplayMemory(settings, spec, 1, Returns(), 0)
    fitting = int(caught.value.hint.split("=")[1].split()[0])
    assert fitting > 10_000
    ReplayMemory(ReplaySettings(buffer_size=fitting, prioritized=is_prioritized), spec, 1, Returns(), 0)


def test_a_machine_without_memory_is_told_so(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10)
    with pytest.raises(SettingsError, match="free some memory"):
        scalar_replay()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("buffer_size", -1),
        ("alpha", 1.5),
        ("alpha", float("nan")),
        ("beta_start", -0.1),
        ("beta_end", 2.0),
        ("beta_env_steps", 0),
        ("priority_epsilon", 0.0),
        ("prioritized_batches", 0),
        ("memory", "tape"),
    ],
)
def test_impossible_settings_are_refused_by_name(name: str, value: object):
    with pytest.raises(SettingsError, match=name):
        ReplaySettings(**{name: value})
