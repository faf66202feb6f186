"""Scalars of TensorBoard's event files, read without TensorBoard: records with checksums, in each a small message.

    record   length (8 bytes) | checksum of it (4) | that many bytes | checksum of them (4)
    Event    1: wall time (double), 2: step (varint), 5: Summary;  Summary  1: Value, repeated
    Value    1: tag, 2: simple_value (float), 8: tensor;  Tensor  1: type, 4: content, 5: floats, 6: doubles

Anybody may have written the file: lengths are bounded, checksums looked at, and what does not fit ends the reading of
that file. Records that are too long for scalars (pictures, sound) are skipped.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hotloop.core.types import Array
from hotloop.runs.files import opened

PREFIX = "events.out.tfevents."
LONGEST_SCALAR, LONGEST_RECORD = 16_384, 2**28
MOST_BYTES, MOST_FILES = 512 * 2**20, 64
_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected


class Scalar(NamedTuple):
    tag: str
    step: int
    time: float
    value: float


def _table() -> Array:
    entries = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        entries = np.where(entries & 1, (entries >> 1) ^ np.uint32(_POLYNOMIAL), entries >> 1).astype(np.uint32)
    return entries


_TABLE = _table()


def masked_checksums(records: Sequence[bytes]) -> Array:
    """CRC-32C of each as TensorFlow writes it (rotated and shifted), all of them side by side: a byte of every record
    at a time, since one record after the other would take a microsecond a byte."""
    lengths = np.array([len(record) for record in records], dtype=np.int64)
    crc = np.full(len(records), 0xFFFFFFFF, dtype=np.uint32)
    order = np.argsort(-lengths, kind="stable")
    bytes_at = np.zeros((len(records), int(lengths.max(initial=0))), dtype=np.uint8)
    for row, place in enumerate(order):
        bytes_at[row, : lengths[place]] = np.frombuffer(records[place], dtype=np.uint8)
    for column in range(bytes_at.shape[1]):
        alive = int(np.searchsorted(-lengths[order], -column, "left"))  # those that are longer than `column`
        crc[:alive] = _TABLE[(crc[:alive] ^ bytes_at[:alive, column]) & 0xFF] ^ (crc[:alive] >> 8)
    crc = ~crc
    masked = ((crc >> 15) | (crc << 17)) + np.uint32(0xA282EAD8)
    out = np.empty_like(masked)
    out[order] = masked
    return out


def read_records(data: bytes) -> Iterator[list[bytes]]:
    """The records of a file that are short enough for scalars, some thousand at a time, checked; ends at the first that
    is damaged or not whole."""
    at, batch, sums = 0, [], []
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        if length > LONGEST_RECORD or at + 16 + length > len(data):
            break
        start = at + 12
        if length <= LONGEST_SCALAR:
            batch += [data[at : at + 8], data[start : start + length]]
            sums += [struct.unpack_from("<I", data, at + 8)[0], struct.unpack_from("<I", data, start + length)[0]]
        at = start + length + 4
        if len(batch) >= 4_096:
            good = _good(batch, sums)
            yield batch[1:good:2]
            if good < len(batch):
                return
            batch, sums = [], []
    if batch:
        yield batch[1 : _good(batch, sums) : 2]


def _good(batch: list[bytes], sums: list[int]) -> int:
    """How many parts stand before the first whose checksum is wrong; whole records only."""
    wrong = np.flatnonzero(masked_checksums(batch) != np.array(sums, dtype=np.uint32))
    return len(batch) if len(wrong) == 0 else int(wrong[0]) // 2 * 2


def fields(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, kind and value of each field; ValueError where the message is none."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield number, kind, value
            continue
        if kind == 2:
            length, at = _varint(message, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if length > len(message) - at:
            raise ValueError("a field that is longer than its message")
        yield number, kind, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise ValueError("a number that is cut off")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise ValueError("a number of too many bytes")


def scalars(event: bytes) -> list[Scalar]:
    """Of one event; none where it holds something else."""
    time, step, found = 0.0, 0, []
    for number, kind, value in fields(event):
        if (number, kind) == (1, 1):
            (time,) = struct.unpack("<d", value)
        elif (number, kind) == (2, 0):
            step = value - 2**64 if value >= 2**63 else value
        elif (number, kind) == (5, 2):
            found += [_value(one) for part, inner, one in fields(value) if (part, inner) == (1, 2)]
    return [Scalar(tag, step, time, value) for tag, value in (one for one in found if one is not None)]


def _value(message: bytes) -> tuple[str, float] | None:
    tag, number = "", None
    for field, kind, value in fields(message):
        if (field, kind) == (1, 2):
            tag = value.decode("utf-8", "replace")[:200]
        elif (field, kind) == (2, 5):
            (number,) = struct.unpack("<f", value)
        elif (field, kind) == (8, 2):
            number = _tensor(value)
    return None if number is None or not tag else (tag, float(number))


def _tensor(message: bytes) -> float | None:
    """A single float or double; a tensor of anything else is no scalar."""
    formats = {1: "<f", 2: "<d"}
    kind, content = 0, b""
    for field, wire, value in fields(message):
        if (field, wire) == (1, 0):
            kind = value
        elif wire in (1, 2, 5) and field in (4, 5, 6):
            content = value
    layout = formats.get(kind)
    return struct.unpack(layout, content)[0] if layout and len(content) == struct.calcsize(layout) else None


def event_files(folder: Path) -> list[Path]:
    """Of one log, in the order in which they were begun: their names hold the time."""
    return [folder / name for name in sorted(os.listdir(folder)) if name.startswith(PREFIX)][:MOST_FILES]


def read_scalars(path: Path) -> Iterator[Scalar]:
    """Of one event file, as far as it is whole."""
    with opened(path) as (descriptor, size):
        data = os.pread(descriptor, min(size, MOST_BYTES), 0)
    for batch in read_records(data):
        for event in batch:
            try:
                yield from scalars(event)
            except (ValueError, struct.error):
                return
