"""Arrays in segments: only what changed is written, neighbors share no file, damage costs one checkpoint."""

import errno
import hashlib
import os
import resource
import tracemalloc

import numpy as np
import pytest

from hotloop.core.errors import CheckpointError, RunError
from hotloop.runs import manifest
from hotloop.runs.checkpoint import Checkpoints, checkpoint_name, load, newest, save
from hotloop.runs.digest import digest
from hotloop.runs.files import write_chunks
from tests.runs.segment_rows import FULL_OR_READ_ONLY, PIECES, FailingDisk, Rows, inodes


def silent(message):
    raise AssertionError(f"unexpected warning: {message}")


@pytest.fixture
def three(tmp_path):
    """Three checkpoints, each with one more piece changed than the one before."""
    rows, checkpoints = Rows(), Checkpoints(tmp_path, keep=3)
    paths = [checkpoints.save(checkpoint_name(1), rows.state, {})]
    for number in (1, 2):
        rows.change(number)
        paths.append(checkpoints.save(checkpoint_name(number + 1), rows.state, {}))
    return rows, checkpoints, paths


def test_how_an_array_is_cut_is_no_part_of_the_digest():
    rows = Rows()
    assert digest(rows.state) == digest(rows.plain_state)


def test_segments_come_back_whole_and_in_order(tmp_path):
    rows = Rows()
    loaded, _ = load(save(tmp_path, checkpoint_name(1), rows.state, {}))
    saved = loaded["replay"]["ring"]["rows"]
    assert np.concatenate(list(saved.pieces)).tolist() == np.concatenate(rows.pieces).tolist()
    assert digest(loaded) == digest(rows.state)


def test_segments_that_did_not_change_are_those_of_the_last_checkpoint_but_one(three):
    first, _, third = map(inodes, three[2])
    assert [old == new for old, new in zip(first, third, strict=True)] == [True, False, False, True, True]


def test_two_neighbors_share_no_file(three):
    first, second, third = map(inodes, three[2])
    assert not {*first} & {*second}
    assert not {*second} & {*third}


def test_where_only_one_checkpoint_stays_the_next_links_to_it(tmp_path):
    rows, checkpoints = Rows(), Checkpoints(tmp_path, keep=1)
    first = inodes(checkpoints.save(checkpoint_name(1), rows.state, {}))
    rows.change(0)
    second = inodes(checkpoints.save(checkpoint_name(2), rows.state, {}))
    assert second[1:] == first[1:]
    assert second[0] != first[0]
    checkpoints.thin()
    assert os.listdir(tmp_path) == [checkpoint_name(2)]
    assert digest(newest(tmp_path, silent)[1]) == digest(rows.state)


def test_thinning_leaves_the_segments_that_are_still_used(tmp_path):
    rows, checkpoints = Rows(), Checkpoints(tmp_path)
    for number in range(9):
        rows.change(number % PIECES)
        checkpoints.save(checkpoint_name(number), rows.state, {})
        checkpoints.thin()
        assert digest(newest(tmp_path, silent)[1]) == digest(rows.state)
    assert sorted(os.listdir(tmp_path)) == [checkpoint_name(7), checkpoint_name(8)]


def test_a_resumed_process_links_to_the_checkpoint_before_the_one_it_loaded(three, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    path, state, _ = checkpoints.newest(silent)
    assert path.name == checkpoint_name(3)
    second, third, fourth = inodes(three[2][1]), inodes(path), inodes(checkpoints.save(checkpoint_name(4), state, {}))
    assert [old == new for old, new in zip(second, fourth, strict=True)] == [True, True, False, True, True]
    assert not {*third} & {*fourth}
    assert digest(load(tmp_path / checkpoint_name(4))[0]) == digest(three[0].state)


def test_what_another_process_saved_meanwhile_is_not_taken_for_ours(three, tmp_path):
    other = Rows()
    other.change(0, 3)
    path = Checkpoints(tmp_path).save(checkpoint_name(4), other.state, {})
    assert not {*inodes(path)} & {inode for older in three[2] for inode in inodes(older)}
    assert digest(load(path)[0]) == digest(other.state)


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOENT])
def test_where_no_link_can_be_made_the_segment_is_written(three, monkeypatch, code):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    rows, checkpoints, paths = three
    monkeypatch.setattr(os, "link", refuse)
    path = checkpoints.save(checkpoint_name(4), rows.state, {})
    assert not {*inodes(path)} & {*inodes(paths[1])}
    assert digest(load(path)[0]) == digest(rows.state)


def test_segments_that_are_linked_are_not_read(three, monkeypatch):
    monkeypatch.setattr(manifest, "SETTLED_NS", -1)
    rows, checkpoints, _ = three
    for name in (checkpoint_name(4), checkpoint_name(5)):
        checkpoints.save(name, rows.state, {})
        checkpoints.thin()
    monkeypatch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("a file was read"))
    rows.change(4)
    path = checkpoints.save(checkpoint_name(6), rows.state, {})
    checkpoints.thin()
    monkeypatch.undo()
    assert digest(load(path)[0]) == digest(rows.state)


def test_a_file_hashed_right_after_it_was_written_is_hashed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "SETTLED_NS", 10**12)  # however long the write below may take
    known, path = manifest.Verified(), tmp_path / "file"
    record = write_chunks(path, [b"abc"])
    status = path.stat()
    known.note(path, record)  # within one tick of the file system's clock
    path.write_bytes(b"xyz")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # and its time does not tell
    with pytest.raises(CheckpointError, match="damaged"):
        known.check(path, record)


def test_a_segment_changed_behind_our_back_is_written_anew(three):
    rows, checkpoints, paths = three
    (paths[1] / "replay.000000.segment").write_bytes(b"not what it was")
    assert digest(load(checkpoints.save(checkpoint_name(4), rows.state, {}))[0]) == digest(rows.state)


def test_more_than_fits_into_memory_is_saved_and_loaded_piece_by_piece(tmp_path):
    rows = Rows(pieces=[np.full((131_072, 2), number, np.float32) for number in range(16)], versions=[*range(17)])
    tracemalloc.start()
    try:
        state, _ = load(Checkpoints(tmp_path).save(checkpoint_name(1), rows.state, {}))
        total = sum(float(piece.sum()) for piece in state["replay"]["ring"]["rows"].pieces)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total == 262_144 * sum(range(16)) + float(rows.pieces[-1].sum())
    assert peak < 5 * 2**20  # of 16 MiB; a piece, its bytes and the hash's buffer


def spoil(path, kind):
    content = bytearray(path.read_bytes())
    if kind == "missing":
        path.unlink()
    elif kind == "truncated":
        os.truncate(path, len(content) - 1)
    else:
        content[-1] ^= 1
        path.write_bytes(content)  # in place: whoever shares the file has the damage too


@pytest.mark.parametrize("kind", ["missing", "truncated", "flipped"])
@pytest.mark.parametrize("number", range(PIECES))
def test_a_damaged_segment_costs_its_checkpoint_and_the_previous_one_is_used(three, tmp_path, number, kind):
    expected = digest(load(three[2][1])[0])
    name = f"replay.{number:06d}.segment"
    spoil(three[2][2] / name, kind)
    warnings: list[str] = []
    path, state, _ = Checkpoints(tmp_path).newest(warnings.append)
    assert path.name == checkpoint_name(2)
    assert digest(state) == expected
    assert len(warnings) == 1
    assert name in warnings[0]


def test_a_segment_damaged_between_the_check_and_its_use_is_detected_too(three):
    state, _ = load(three[2][2])
    spoil(three[2][2] / "replay.000003.segment", "flipped")
    with pytest.raises(CheckpointError, match=r"replay\.000003\.segment"):
        list(state["replay"]["ring"]["rows"].pieces)


def number_of_writes(folder, monkeypatch):
    rows, checkpoints = two_saved(folder)
    with monkeypatch.context() as patch:
        disk = FailingDisk(patch, errno.ENOSPC, 10_000)
        checkpoints.save(checkpoint_name(3), rows.state, {})
    return disk.done


def two_saved(folder):
    rows, checkpoints = Rows(), Checkpoints(folder)
    checkpoints.save(checkpoint_name(1), rows.state, {})
    rows.change(0)
    checkpoints.save(checkpoint_name(2), rows.state, {})
    rows.change(1)
    return rows, checkpoints


@pytest.mark.parametrize("code", FULL_OR_READ_ONLY)
def test_a_disk_that_fails_at_any_write_leaves_the_previous_checkpoint_and_is_explained(tmp_path, monkeypatch, code):
    writes = number_of_writes(tmp_path / "count", monkeypatch)
    assert writes > 3 * 6
    for fail_at in range(writes - 1):  # the last is the fsync after the rename: that checkpoint is there
        folder = tmp_path / str(fail_at)
        rows, checkpoints = two_saved(folder)
        before = digest(newest(folder, silent)[1])
        with monkeypatch.context() as patch:
            FailingDisk(patch, code, fail_at)
            with pytest.raises(RunError, match=f"cannot write checkpoint .*: {os.strerror(code)}") as caught:
                checkpoints.save(checkpoint_name(3), rows.state, {})
        assert "space" in caught.value.hint if code == errno.ENOSPC else "read-only" in caught.value.hint
        assert sorted(os.listdir(folder)) == [checkpoint_name(1), checkpoint_name(2)]
        assert digest(newest(folder, silent)[1]) == before
        assert digest(load(checkpoints.save(checkpoint_name(3), rows.state, {}))[0]) == digest(rows.state)


def test_the_kernels_limit_on_file_size_stops_a_segment_like_a_full_disk(tmp_path):
    checkpoints, small = Checkpoints(tmp_path), Rows()
    checkpoints.save(checkpoint_name(1), small.state, {})
    large = Rows(pieces=[np.zeros((20_000, 2), np.float32) for _ in range(PIECES - 1)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
    try:
        with pytest.raises(RunError, match="too large"):
            checkpoints.save(checkpoint_name(2), large.state, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == [checkpoint_name(1)]
    assert digest(newest(tmp_path, silent)[1]) == digest(small.state)


def test_segments_are_fsynced_before_the_manifest_and_links_need_no_fsync_of_their_own(three, monkeypatch):
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor):
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        real(descriptor)

    rows, checkpoints, _ = three
    monkeypatch.setattr(os, "fsync", fsync)
    checkpoints.save(checkpoint_name(4), rows.state, {})
    parts = ["learner.json", "learner.safetensors", "replay.json", "replay.safetensors"]
    assert sorted(synced[:5]) == sorted(["replay.000002.segment", *parts])  # changed since checkpoint 2
    assert synced[5] == "manifest.json"
