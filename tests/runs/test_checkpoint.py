"""Checkpoints: everything comes back bit for bit, names sort, the newest two stay."""

import errno
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hotloop.core.errors import CheckpointError, RunError
from hotloop.runs.checkpoint import checkpoint_name, keep, load, newest, save
from hotloop.runs.digest import digest
from hotloop.runs.files import temporary_beside
from hotloop.runs.tensors import DTYPES


def assert_same(found, expected):
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray)
        assert (found.dtype, found.shape) == (expected.dtype.newbyteorder("="), expected.shape)
        assert found.tobytes() == expected.astype(expected.dtype.newbyteorder("=")).tobytes()
    else:
        assert type(found) is type(expected)
        assert repr(found) == repr(expected)  # repr: nan equals nan, 0.0 differs from -0.0


def silent(message):
    raise AssertionError(f"unexpected warning: {message}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_back_whole_empty_and_zero_dimensional(tmp_path, dtype):
    state = {
        "replay": {
            "full": np.arange(6).reshape(2, 3).astype(dtype),
            "zero_dimensional": np.array(1, dtype=dtype),
            "empty": np.zeros((0, 4), dtype=dtype),
            "odd": np.ones(3, dtype=dtype),
            "transposed": np.arange(6).reshape(2, 3).astype(dtype).T,
            "swapped": np.arange(3).astype(np.dtype(dtype).newbyteorder(">")),
        }
    }
    loaded, _ = load(save(tmp_path, checkpoint_name(1), state, {}))
    assert_same(loaded, state)


def test_nested_dicts_scalars_and_meta_come_back(tmp_path):
    state = {
        "learner": {
            "optimizer": {"step": np.uint64([2**64 - 1]), "betas": [0.9, 0.999], "nothing": {}},
            "best": float("-inf"),
            "missing": float("nan"),
            "zero": -0.0,
            "tenth": 0.1,
            "large": 2**70,
            "flag": True,
            "name": "naïve ✓",
            "none": None,
            "rows": [[1, 2], [], {"deep": None}],
        },
        "counters": {"env_steps": 2**53 + 1},
        "empty": {},
    }
    meta = {"env_steps": 2**53 + 1, "events_offset": 12, "return": 1.5}
    loaded, loaded_meta = load(save(tmp_path, checkpoint_name(1), state, meta))
    assert_same(loaded, state)
    assert loaded_meta == meta
    assert digest(loaded) == digest(state)


def test_loaded_arrays_can_be_written_to(tmp_path):
    loaded, _ = load(save(tmp_path, checkpoint_name(1), {"a": {"x": np.zeros(3)}}, {}))
    loaded["a"]["x"][0] = 7.0
    assert loaded["a"]["x"].tolist() == [7.0, 0.0, 0.0]


def test_numpy_scalars_come_back_as_python_numbers(tmp_path):
    loaded, _ = load(
        save(tmp_path, checkpoint_name(1), {"a": {"x": np.float32(0.5), "y": [np.int64(3)]}}, {"z": np.bool_(True)})
    )
    assert loaded == {"a": {"x": 0.5, "y": [3]}}


ARRAYS = hnp.arrays(
    dtype=st.sampled_from([*DTYPES]), shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
)
KEYS = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=5)
LEAVES = ARRAYS | st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8"))
STATES = st.dictionaries(
    st.sampled_from(["learner", "envs", "replay"]),
    st.dictionaries(
        KEYS, st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=5), max_size=4
    ),
)


@settings(max_examples=60, deadline=None)
@given(state=STATES)
def test_any_state_comes_back_with_the_same_digest(tmp_path_factory, state):
    loaded, _ = load(save(tmp_path_factory.mktemp("any"), checkpoint_name(1), state, {}))
    assert_same(loaded, state)
    assert digest(loaded) == digest(state)


@pytest.mark.parametrize(
    "part",
    [
        {"a/b": 1},
        {"": 1},
        {3: 1},
        {"__metadata__": np.zeros(1)},
        {"a": object()},
        {"a": [np.zeros(2)]},
        {"a": {1, 2}},
        {"a": np.array(["text"])},
        {"a": np.array([None])},
        {"a": [{1: 2}]},
    ],
)
def test_what_would_not_come_back_is_refused_before_anything_is_written(tmp_path, part):
    with pytest.raises(RunError):
        save(tmp_path, checkpoint_name(1), {"envs": part}, {})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "", "manifest", "a.b"])
def test_part_and_checkpoint_names_stay_inside_the_folder(tmp_path, name):
    with pytest.raises(RunError, match="names are letters"):
        save(tmp_path, checkpoint_name(1), {name: {}}, {})
    with pytest.raises(RunError, match="names are letters"):
        save(tmp_path, name, {"a": {}}, {})


def test_names_sort_by_env_steps_and_a_repeated_save_sorts_after_the_first(tmp_path):
    for number, env_steps in enumerate([9_000_000, 10_000_000] + 11 * [10_000_000]):
        save(tmp_path, checkpoint_name(env_steps), {"a": {}}, {"number": number})
    path, _, meta = newest(tmp_path, silent)
    assert path.name == "000000010000000-11"
    assert meta == {"number": 12}


def test_only_the_two_newest_are_kept(tmp_path):
    for env_steps in (100, 200, 300, 300, 400):
        save(tmp_path, checkpoint_name(env_steps), {"a": {}}, {})
    keep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["000000000000300-1", "000000000000400"]


def test_a_damaged_checkpoint_does_not_count_among_the_kept(tmp_path):
    for env_steps in (100, 200, 300, 400):
        path = save(tmp_path, checkpoint_name(env_steps), {"a": {"x": 1}}, {})
    (path / "a.json").write_text('{"x":2}')
    keep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [checkpoint_name(200), checkpoint_name(300)]


def test_where_no_checkpoint_verifies_none_is_removed(tmp_path):
    path = save(tmp_path, checkpoint_name(1), {"a": {}}, {})
    (path / "a.json").unlink()
    temporary_beside(tmp_path / checkpoint_name(2)).mkdir()
    keep(tmp_path)
    assert os.listdir(tmp_path) == [checkpoint_name(1)]


def test_a_folder_without_checkpoints_has_no_newest(tmp_path):
    assert newest(tmp_path, silent) is None
    assert newest(tmp_path / "missing", silent) is None
    keep(tmp_path / "missing")


def crash(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("function", ["rename", "fsync", "write"])
def test_an_interrupted_save_leaves_the_previous_checkpoint_and_no_litter(tmp_path, monkeypatch, function):
    save(tmp_path, checkpoint_name(1), {"a": {"x": 1}}, {})
    with monkeypatch.context() as patch:
        patch.setattr(os, function, crash)
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path, checkpoint_name(2), {"a": {"x": 2}}, {})
    assert os.listdir(tmp_path) == [checkpoint_name(1)]


def test_what_a_killed_save_leaves_is_never_read_and_removed_by_the_next_keep(tmp_path, monkeypatch):
    save(tmp_path, checkpoint_name(1), {"a": {"x": 1}}, {})
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", crash)
        patch.setattr("shutil.rmtree", lambda *_, **__: None)  # a killed process cleans nothing up
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path, checkpoint_name(2), {"a": {"x": 2}}, {})
    assert len(os.listdir(tmp_path)) == 2
    assert newest(tmp_path, silent)[1] == {"a": {"x": 1}}
    keep(tmp_path)
    assert os.listdir(tmp_path) == [checkpoint_name(1)]


@pytest.mark.parametrize("function", ["write", "fsync", "rename", "open", "mkdir"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_full_or_read_only_disk_is_explained_and_the_previous_checkpoint_still_loads(
    tmp_path, monkeypatch, function, code
):
    save(tmp_path, checkpoint_name(1), {"a": {"x": np.arange(3)}}, {})

    real = getattr(os, function)

    def fail(*arguments, **options):
        if function == "open" and not arguments[1] & os.O_CREAT:  # reading, and cleaning up, still works
            return real(*arguments, **options)
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises(RunError, match="cannot write checkpoint") as caught:
            save(tmp_path, checkpoint_name(2), {"a": {"x": np.arange(4)}}, {})
    assert not isinstance(caught.value, CheckpointError)
    assert caught.value.hint
    assert os.listdir(tmp_path) == [checkpoint_name(1)]
    assert newest(tmp_path, silent)[1]["a"]["x"].tolist() == [0, 1, 2]
