from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from hotloop.render.picture import png_bytes, write_png


def chunks(data: bytes) -> dict[bytes, bytes]:
    """Kind -> content, each checked against its sum."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    found, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + content),)
        found[kind] = content
        at += 12 + length
    return found


def test_a_picture_of_two_pixels_by_eye() -> None:
    found = chunks(png_bytes(np.array([[[1, 2, 3]], [[4, 5, 6]]], np.uint8)))  # one wide, two high
    assert list(found) == [b"IHDR", b"IDAT", b"IEND"]
    assert found[b"IHDR"] == bytes([0, 0, 0, 1, 0, 0, 0, 2, 8, 2, 0, 0, 0])
    assert zlib.decompress(found[b"IDAT"]) == bytes([0, 1, 2, 3, 0, 4, 5, 6])


def test_pixels_come_back_as_they_were(tmp_path: Path) -> None:
    frame = np.random.default_rng(0).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    write_png(tmp_path / "a.png", frame[:, ::-1])  # a view: not in the order in which it lies in memory
    found = chunks((tmp_path / "a.png").read_bytes())
    rows = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(7, 1 + 15)
    assert not rows[:, 0].any()
    np.testing.assert_array_equal(rows[:, 1:].reshape(7, 5, 3), frame[:, ::-1])
