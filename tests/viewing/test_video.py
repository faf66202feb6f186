"""Videos as ffmpeg reads them back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from hotloop.core.errors import RunError
from hotloop.viewing.video import Video, ffmpeg

pytest.importorskip("imageio_ffmpeg", reason="the extra `video` is not installed")

RED, BLUE = (220, 40, 40), (40, 40, 220)


def frames(count: int) -> list[np.ndarray]:
    """Red, then blue, half of each."""
    return [np.full((16, 32, 3), RED if index < count // 2 else BLUE, np.uint8) for index in range(count)]


def read(path: Path) -> np.ndarray:
    """[frames, 16, 32, 3] as decoded."""
    command = [ffmpeg(), "-loglevel", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    data = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    return np.frombuffer(data, np.uint8).reshape(-1, 16, 32, 3)


def write(path: Path, fps: float, count: int) -> None:
    with Video(path, fps) as video:
        for frame in frames(count):
            video.add(frame)


@pytest.mark.parametrize("name", ["film.mp4", "film.gif"])
def test_a_video_shows_the_frames_that_went_in(name: str, tmp_path: Path) -> None:
    write(tmp_path / "new" / name, fps=20, count=10)
    shown = read(tmp_path / "new" / name).astype(int)
    assert len(shown) == 10
    assert abs(shown[:5] - RED).max() < 12
    assert abs(shown[5:] - BLUE).max() < 12
    assert [path.name for path in (tmp_path / "new").iterdir()] == [name]  # nothing else is left


@pytest.mark.parametrize(("name", "expected"), [("fast.mp4", 60), ("fast.gif", 50)])
def test_a_game_faster_than_video_is_thinned_out(name: str, expected: int, tmp_path: Path) -> None:
    write(tmp_path / name, fps=200, count=200)  # one second
    assert abs(len(read(tmp_path / name)) - expected) <= 2


def test_an_error_on_the_way_leaves_no_half_file(tmp_path: Path) -> None:
    def interrupted() -> None:
        with Video(tmp_path / "film.mp4", 20) as video:
            video.add(frames(1)[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())


def test_what_ffmpeg_says_is_told(tmp_path: Path) -> None:
    def add_odd() -> None:
        with Video(tmp_path / "film.mp4", 20) as video:
            for _ in range(200):
                video.add(np.zeros((15, 31, 3), np.uint8))

    with pytest.raises(RunError, match=r"film.mp4"):
        add_odd()
    assert not list(tmp_path.iterdir())
