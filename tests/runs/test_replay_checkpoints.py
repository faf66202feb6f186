"""A replay through checkpoints: whatever happened between two saves, what is loaded is what was there."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.errors import CheckpointError
from hotloop.replay import segments
from hotloop.runs.checkpoint import Checkpoints, checkpoint_name
from hotloop.runs.digest import digest
from tests.replay.replay_steps import scalar_replay, stored_rows, walk
from tests.runs.segment_rows import inodes

ROWS_PER_SEGMENT = 4
ROW_BYTES = 24  # action, reward, discount, and two observations of one number


@pytest.fixture(autouse=True)
def small_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", ROWS_PER_SEGMENT * ROW_BYTES)


class Trainer:
    """A replay and its checkpoints, and the digest that each checkpoint should have."""

    def __init__(self, folder, memory):
        self.folder, self.memory, self.expected, self.added = folder, memory, {}, 0
        self.start()

    def start(self):
        kind = {"memory": self.memory, "folder": str(self.folder.parent)} if self.memory == "disk" else {}
        self.replay = scalar_replay(buffer_size=18, prioritized=True, n_step=2, **kind)
        self.checkpoints = Checkpoints(self.folder)

    def add(self, count):
        self.added += 1000  # never the same numbers again
        walk(self.replay, count, self.added)

    def save(self):
        path = self.checkpoints.save(checkpoint_name(1), {"replay": self.replay.state()}, {})
        self.checkpoints.thin()
        self.expected[path.name] = digest(self.replay.state())

    def go_back(self):
        """As after a loss that was not a number: this process loads its newest checkpoint."""
        found = self.checkpoints.newest(lambda _: None)
        if found is not None:
            path, state, _ = found
            self.replay.load_state(state["replay"])
            assert digest(self.replay.state()) == self.expected[path.name]

    def resume(self):
        self.start()
        self.go_back()

    def damage_newest(self):
        paths = sorted(self.folder.glob("*"), key=lambda path: int(path.name.partition("-")[2] or 0))
        if len(paths) > 1:
            target = sorted(paths[-1].glob("*.segment"))[0]
            target.write_bytes(bytes(len(target.read_bytes())))


OPERATIONS = st.sampled_from(["save", "save", "go_back", "resume", "damage_newest"])


@settings(max_examples=60)
@given(
    story=st.lists(st.tuples(st.sampled_from([0, 1, 3, 7, 25]), OPERATIONS), max_size=12),
    memory=st.sampled_from(["ram", "disk"]),
)
def test_every_checkpoint_holds_what_the_replay_held(tmp_path_factory, story, memory):
    trainer = Trainer(tmp_path_factory.mktemp("story") / "checkpoints", memory)
    for count, operation in story:
        trainer.add(count)
        getattr(trainer, operation)()
    trainer.save()
    trainer.resume()


def test_only_segments_with_new_rows_are_written(tmp_path):
    trainer = Trainer(tmp_path / "checkpoints", "ram")
    trainer.add(13)  # rows 0 to 11 are full n-step windows: three segments of four
    paths = [
        trainer.checkpoints.save(name, {"replay": trainer.replay.state()}, {})
        for name in (checkpoint_name(1), checkpoint_name(2))
    ]
    walk(trainer.replay, 1, 2000)
    paths.append(trainer.checkpoints.save(checkpoint_name(3), {"replay": trainer.replay.state()}, {}))
    first, _, third = map(inodes, paths)
    assert third[:3] == first
    assert len(third) == 4


def test_a_ring_that_went_round_rewrites_where_it_wrote(tmp_path):
    replay, checkpoints = scalar_replay(buffer_size=18), Checkpoints(tmp_path, keep=1)
    walk(replay, 17)
    first = inodes(checkpoints.save(checkpoint_name(1), {"replay": replay.state()}, {}))
    walk(replay, 3, 17)  # rows 17, 0 and 1: the last segment and the first
    second = inodes(checkpoints.save(checkpoint_name(2), {"replay": replay.state()}, {}))
    assert [old == new for old, new in zip(first, second, strict=True)] == [False, True, True, True, False]


def test_rows_saved_as_one_array_are_still_read():
    old, new = scalar_replay(buffer_size=18), scalar_replay(buffer_size=18)
    walk(old, 30)
    state = old.state()
    state["ring"]["rows"] = np.concatenate(state["ring"]["rows"].pieces)
    new.load_state(state)
    assert stored_rows(new) == stored_rows(old)
    assert digest(new.state()) == digest(old.state())


def test_rows_cut_in_another_way_are_read_and_written_anew(tmp_path, monkeypatch):
    old = scalar_replay(buffer_size=18)
    walk(old, 30)
    Checkpoints(tmp_path).save(checkpoint_name(1), {"replay": old.state()}, {})
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 5 * ROW_BYTES)
    new, checkpoints = scalar_replay(buffer_size=18), Checkpoints(tmp_path, keep=1)
    path, state, _ = checkpoints.newest(lambda _: None)
    new.load_state(state["replay"])
    assert digest(new.state()) == digest(old.state())
    saved = checkpoints.save(checkpoint_name(2), {"replay": new.state()}, {})
    assert len(inodes(path)) == 5
    assert len(inodes(saved)) == 4
    assert not {*inodes(path)} & {*inodes(saved)}


@pytest.mark.parametrize("change", ["one too few", "one too many", "wider", "floats", "no rows", "a number"])
def test_rows_that_do_not_fit_are_refused(change):
    replay = scalar_replay(buffer_size=18)
    walk(replay, 9)
    state = replay.state()
    whole = np.concatenate(state["ring"]["rows"].pieces)
    state["ring"]["rows"] = {
        "one too few": whole[:-1],
        "one too many": np.concatenate([whole, whole[:1]]),
        "wider": np.zeros((9, ROW_BYTES + 8), np.uint8),
        "floats": whole.astype(np.float32),
        "no rows": np.array(3, np.uint8),
        "a number": 3,
    }[change]
    with pytest.raises(CheckpointError, match="replay rows"):
        scalar_replay(buffer_size=18).load_state(state)


def test_an_empty_replay_is_saved_and_loaded(tmp_path):
    checkpoints, replay = Checkpoints(tmp_path), scalar_replay(buffer_size=18)
    checkpoints.save(checkpoint_name(1), {"replay": replay.state()}, {})
    _, state, _ = checkpoints.newest(lambda _: None)
    replay.load_state(state["replay"])
    assert replay.size == 0
    assert os.listdir(tmp_path) == [checkpoint_name(1)]
