"""Logs of other programs as rows: records with checksums against a slow oracle, tables, JSON lines, hostile files."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import RunError
from hotloop.runs.logs import read_log
from hotloop.runs.tensorboard import masked_checksums, read_records, scalars


def slow_checksum(data: bytes) -> int:
    """CRC-32C bit by bit, masked as TensorFlow masks it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", slow_checksum(length)) + data + struct.pack("<I", slow_checksum(data))


def test_the_checksum_of_the_standard_text():
    # CRC-32C("123456789") = e3069283, as every table of such checksums says; masked by hand
    crc = 0xE3069283
    assert slow_checksum(b"123456789") == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=12))
def test_checksums_side_by_side_are_those_one_after_another(records):
    assert masked_checksums(records).tolist() == [slow_checksum(one) for one in records]


def event(step: int, tag: bytes, value: float) -> bytes:
    inner = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(inner)]) + inner
    return b"\x09" + struct.pack("<d", 1.0) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary


def test_an_event_by_eye():
    assert scalars(event(5, b"loss", 0.5)) == [("loss", 5, 1.0, 0.5)]


def test_a_record_with_a_wrong_checksum_ends_the_file_and_costs_none_before_it():
    good = [event(step, b"loss", float(step)) for step in range(4)]
    data = b"".join(map(record, good))
    flipped = bytearray(data)
    flipped[len(record(good[0])) * 2 + 20] ^= 1  # within the third
    assert [one for batch in read_records(data) for one in batch] == good
    assert [one for batch in read_records(bytes(flipped)) for one in batch] == good[:2]


@given(st.binary(max_size=200) | st.binary(max_size=60).map(record))
def test_hostile_event_files_end_without_a_traceback(data):
    for batch in read_records(data):
        for one in batch:
            try:
                scalars(one)
            except (ValueError, struct.error):
                continue


@pytest.mark.parametrize("length", [2**63, 2**40, 2**28 + 1, 100])
def test_a_length_beyond_the_file_is_not_believed(length):
    head = struct.pack("<Q", length)
    assert list(read_records(head + struct.pack("<I", slow_checksum(head)) + b"abc")) == []


def test_a_folder_of_event_files_is_one_log_and_so_is_one_of_them(tmp_path):
    for number in (1, 2):
        records = [record(event(step, b"r", float(step))) for step in range(10 * number, 10 * number + 2)]
        (tmp_path / f"events.out.tfevents.{number}").write_bytes(b"".join(records))
    both, second = read_log(tmp_path), read_log(tmp_path / "events.out.tfevents.2")
    assert [row["mean_return"] for _, row in both.rows] == [10.0, 11.0, 20.0, 21.0]
    assert [row["env_steps"] for _, row in second.rows] == [20.0, 21.0]


def test_json_lines_by_eye(tmp_path):
    rows = [
        {"step": 10, "time": 0.5, "return": 1.0, "note": "x", "done": True},
        {"step": 20, "time": 1.5, "return": 3.0, "eval": {"mean_reward": 9}},
    ]
    text = "\n".join(["not JSON", *map(json.dumps, rows), "[1]", '{"step": 30, "return": NaN', '{"step": 1e999}'])
    (tmp_path / "log.jsonl").write_text(text)
    log = read_log(tmp_path / "log.jsonl")
    first, second, judged = log.rows
    assert first == ("progress", {"env_steps": 10.0, "seconds": 0.5, "step": 10.0, "time": 0.5, "return": 1.0})
    assert second[1]["return"] == 3.0
    assert judged == (
        "evaluation",
        {"env_steps": 20.0, "seconds": 1.5, "eval/mean_reward": 9.0, "mean_return": 9.0},
    )
    assert (log.placed, log.timed) == (True, True)


def test_a_table_that_tells_neither_place_nor_time_says_so(tmp_path):
    (tmp_path / "mine.csv").write_text("# mine\nreward\n1\n2\n")
    log = read_log(tmp_path / "mine.csv")
    assert [row["env_steps"] for _, row in log.rows] == [1.0, 2.0]
    assert (log.placed, log.timed) == (False, False)


@given(data=st.binary(max_size=300), name=st.sampled_from(["a.jsonl", "monitor.csv", "a.csv", "events.out.tfevents.1"]))
def test_hostile_logs_end_without_a_traceback(data, name, tmp_path_factory):
    file = tmp_path_factory.mktemp("logs") / name
    file.write_bytes(data)
    read_log(file)


@pytest.mark.parametrize("name", ["notes.txt", "model.zip", ".hidden.csv"])
def test_what_is_no_log_is_refused(name, tmp_path):
    (tmp_path / name).write_text("r,l,t\n1,2,3\n")
    with pytest.raises(RunError, match="no log"):
        read_log(tmp_path / name)
