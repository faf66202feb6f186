"""Rows on a disk: the same as in memory to the last bit, room asked for beforehand, nothing left behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import SettingsError
from hotloop.core.types import ArraySpec
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay import memory
from hotloop.replay.buffer import ReplayMemory
from hotloop.replay.n_step import Returns
from hotloop.replay.storage import placed
from hotloop.runs.digest import digest
from tests.replay.replay_steps import env_step, scalar_replay, walk


@pytest.fixture
def on_disk(tmp_path: Path) -> dict[str, str]:
    return {"memory": "disk", "folder": str(tmp_path)}


@given(
    is_prioritized=st.booleans(), n_step=st.integers(1, 3), counts=st.lists(st.integers(1, 20), min_size=1, max_size=6)
)
def test_a_replay_on_disk_is_the_one_in_memory_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, is_prioritized: bool, n_step: int, counts: list[int]
):
    kind = {"buffer_size": 23, "prioritized": is_prioritized, "n_step": n_step, "seed": 3}
    ram = scalar_replay(**kind)
    disk = scalar_replay(**kind, memory="disk", folder=str(tmp_path_factory.getbasetemp()))
    start = 0
    for count in counts:
        drawn = []
        for replay in (ram, disk):
            walk(replay, count + 3, start)
            batch = replay.sample(8, 2 if not is_prioritized else 1, start)
            replay.update_priorities(batch.index, batch.reward)
            drawn.append([batch.index, batch.weight, batch.obs, batch.next_obs, batch.reward, batch.discount])
        assert all(np.array_equal(left, right) for left, right in zip(*drawn, strict=True))
        start += count + 3
    assert digest(disk.state()) == digest(ram.state())


def test_byte_images_on_disk_come_back_as_they_went_in(on_disk: dict[str, str]):
    images = np.random.default_rng(0).integers(0, 256, (6, 2, 3, 5), dtype=np.uint8)
    replay = ReplayMemory(ReplaySettings(**on_disk), ArraySpec((3, 5), np.dtype(np.uint8)), 2, Returns(), 0)
    for i in range(5):
        step = env_step([1, 1], [0, 0])
        step.final_obs = images[i + 1]
        replay.add(images[i], np.array([2 * i, 2 * i + 1]), step)
    batch = replay.sample(16, 2, 0)
    assert np.array_equal(batch.obs, images[batch.action // 2, batch.action % 2])
    assert np.array_equal(batch.next_obs, images[batch.action // 2 + 1, batch.action % 2])


def test_rows_of_several_pages_come_back_too(on_disk: dict[str, str]):
    spec = ArraySpec((5000,), np.dtype(np.uint8))
    replay = ReplayMemory(ReplaySettings(buffer_size=3, **on_disk), spec, 1, Returns(), 0)
    step = env_step([1], [0])
    step.final_obs = np.full((1, 5000), 8, np.uint8)
    for value in range(4):
        replay.add(np.full((1, 5000), value, np.uint8), np.array([value]), step)
    batch = replay.sample(20, 1, 0)
    assert set(batch.action[0].tolist()) == {1, 2, 3}
    assert np.array_equal(batch.obs[0], np.repeat(batch.action[0][:, None], 5000, 1))


def test_nothing_has_a_name_on_the_disk_and_no_file_stays_open(on_disk: dict[str, str], tmp_path: Path):
    before = os.listdir("/proc/self/fd")
    replay = scalar_replay(buffer_size=1000, **on_disk)
    walk(replay, 5)
    assert os.listdir(tmp_path) == []
    del replay
    assert sorted(os.listdir("/proc/self/fd")) == sorted(before)


@pytest.mark.parametrize("is_prioritized", [False, True])
def test_rows_that_the_disk_cannot_hold_are_refused_with_a_capacity_that_fits(monkeypatch, on_disk, is_prioritized):
    monkeypatch.setattr(memory, "free_disk_bytes", lambda _: 1_000_000)
    with pytest.raises(SettingsError, match=r"(?s)on the disk of .*replay\.buffer_size=") as caught:
        scalar_replay(buffer_size=10**12, prioritized=is_prioritized, **on_disk)
    fitting = int(caught.value.hint.split("=")[1].split()[0])
    assert fitting == 33_000  # 800,000 bytes of rows of 24
    scalar_replay(buffer_size=fitting, prioritized=is_prioritized, **on_disk)


def test_rows_on_disk_ask_no_memory_but_their_priorities_do(monkeypatch, on_disk):
    monkeypatch.setattr(memory, "available_bytes", lambda: 100_000)
    scalar_replay(buffer_size=50_000, **on_disk)
    with pytest.raises(SettingsError, match="memory that is free"):
        scalar_replay(buffer_size=50_000, prioritized=True, **on_disk)
    with pytest.raises(SettingsError, match="memory that is free"):
        scalar_replay(buffer_size=50_000)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_fills_up_meanwhile_is_explained_rather_than_a_crash_later(monkeypatch, on_disk, code):
    def fail(*_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    with pytest.raises(SettingsError, match=os.strerror(code)) as caught:
        scalar_replay(**on_disk)
    assert "replay.folder" in caught.value.hint


def test_a_folder_that_is_not_there_is_refused():
    with pytest.raises(SettingsError, match=r"replay\.folder"):
        scalar_replay(memory="disk", folder="/no/such/folder")


def test_a_folder_has_no_say_in_memory():
    with pytest.raises(SettingsError, match=r"replay\.folder"):
        ReplaySettings(folder="/tmp")


def test_without_a_folder_rows_lie_on_the_disk_of_the_run(tmp_path: Path):
    settings = ReplaySettings(memory="disk")
    assert placed(settings, str(tmp_path / "runs" / "new")).folder == str(tmp_path)
    assert placed(ReplaySettings(memory="disk", folder="/x"), str(tmp_path)).folder == "/x"
    assert placed(ReplaySettings(), str(tmp_path)) == ReplaySettings()
