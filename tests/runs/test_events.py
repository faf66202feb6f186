"""`events.jsonl`: whole rows or none."""

import errno
import json
import os

import numpy as np
import pytest

from hotloop.core.errors import RunError
from hotloop.runs.events import EventLog, last_events, read_events


@pytest.fixture
def log(tmp_path):
    log = EventLog(tmp_path / "events.jsonl")
    yield log
    log.close()


def rows(log):
    return list(read_events(log.path))


def test_rows_come_back_in_order_and_are_on_disk_at_once(log):
    log.append({"event": "start", "schema": 1})
    log.append({"event": "log", "env_steps": 2**53 + 1})
    assert rows(log) == [{"event": "start", "schema": 1}, {"event": "log", "env_steps": 2**53 + 1}]
    assert log.offset == log.path.stat().st_size == log.sync()


def test_numbers_json_cannot_say_become_null(log):
    log.append(
        {"a": float("nan"), "b": [float("inf"), 1.5], "c": np.float32("nan"), "d": np.int64(3), "e": {"f": -np.inf}}
    )
    assert rows(log) == [{"a": None, "b": [None, 1.5], "c": None, "d": 3, "e": {"f": None}}]


def test_a_row_with_line_breaks_stays_one_line(log):
    log.append({"message": "two\nlines\u2028"})
    assert log.path.read_bytes().count(b"\n") == 1
    assert rows(log) == [{"message": "two\nlines\u2028"}]


@pytest.mark.parametrize("tail", [b"", b'{"n": 2', b'{"n": 2}', b"\x00\x00\x00"])
def test_a_torn_last_line_is_not_read_and_does_not_spoil_the_next_row(tmp_path, tail):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"n":0}\n{"n":1}\n' + tail)
    assert list(read_events(path)) == [{"n": 0}, {"n": 1}]
    log = EventLog(path)
    log.append({"n": 3})
    log.close()
    assert path.read_bytes() == b'{"n":0}\n{"n":1}\n{"n":3}\n'


def test_a_file_of_one_torn_line_longer_than_a_block_becomes_empty(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"x" * 200_000)
    log = EventLog(path)
    log.close()
    assert path.read_bytes() == b""


def test_truncating_forgets_what_came_after_the_offset_and_appending_goes_on_there(log):
    log.append({"n": 0})
    offset = log.offset
    log.append({"n": 1})
    log.truncate(offset)
    assert log.offset == offset
    log.append({"n": 2})
    assert rows(log) == [{"n": 0}, {"n": 2}]
    log.truncate(0)
    assert rows(log) == []


@pytest.mark.parametrize("offset", [-1, 3, 9, 10**9])
def test_an_offset_that_ends_no_row_is_refused_and_changes_nothing(log, offset):
    log.append({"n": 0})  # 8 bytes
    with pytest.raises(RunError, match=r"events\.jsonl"):
        log.truncate(offset)
    assert rows(log) == [{"n": 0}]


def test_a_full_disk_takes_back_the_half_written_row(log, monkeypatch):
    log.append({"n": 0})
    real_write = os.write

    def half_then_full(descriptor, data):
        if len(data) > 4:
            return real_write(descriptor, bytes(data[: len(data) - 4]))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half_then_full)
        with pytest.raises(RunError, match="No space") as caught:
            log.append({"n": 1})
    assert "space" in caught.value.hint
    log.append({"n": 2})
    assert rows(log) == [{"n": 0}, {"n": 2}]


@pytest.mark.parametrize("line", [b"{broken}", b"[1]", b"", b"[" * 100_000])
def test_a_broken_line_in_the_middle_is_named(tmp_path, line):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"n":0}\n' + line + b'\n{"n":2}\n')
    with pytest.raises(RunError, match="line 2"):
        list(read_events(path))


def test_a_line_without_end_is_not_swallowed_whole(tmp_path):
    path = tmp_path / "events.jsonl"
    path.touch()
    os.truncate(path, 2**40)  # sparse: a terabyte of zeros
    with pytest.raises(RunError, match="line 1 is longer"):
        list(read_events(path))


def test_the_tail_of_a_long_file_is_read_alone(log):
    for n in range(1000):
        log.append({"n": n})
    tail = last_events(log.path, window=100)
    assert tail[-1] == {"n": 999}
    assert [row["n"] for row in tail] == list(range(1000 - len(tail), 1000))
    assert len(tail) == 9  # of 10 bytes each, ten fit but the first may be cut
    assert len(last_events(log.path, window=10**6)) == 1000


def test_a_link_is_not_followed_out_of_the_run(tmp_path):
    (tmp_path / "precious").write_text("no newline at the end")
    (tmp_path / "events.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(RunError, match=r"events\.jsonl"):
        EventLog(tmp_path / "events.jsonl")
    assert (tmp_path / "precious").read_text() == "no newline at the end"


def test_missing_files_and_folders_are_explained(tmp_path):
    with pytest.raises(RunError, match="missing"):
        list(read_events(tmp_path / "missing.jsonl"))
    with pytest.raises(RunError, match="missing"):
        EventLog(tmp_path / "missing" / "events.jsonl")


def test_rows_are_plain_json(log):
    log.append({"text": "naïve", "tuple": (1, 2), "array": np.arange(3)})
    assert json.loads(log.path.read_text()) == {"text": "naïve", "tuple": [1, 2], "array": [0, 1, 2]}
