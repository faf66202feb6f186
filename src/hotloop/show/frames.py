"""Episodes as pictures: in memory for a page, or one PNG file each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.algos.registry import RunSettings
from hotloop.core.errors import RunError, SettingsError
from hotloop.core.types import Array, Policy
from hotloop.show.play import play_episodes
from hotloop.show.png import write_png


@dataclass(frozen=True)
class Recording:
    frames: list[Array]  # [height, width, 3] uint8 each, even sizes; the first one is the start
    stats: dict[str, Any]  # return, length, the workload's own; `end` is `stopped` where `max_frames` cut it
    fps: float


def record(agent: Policy, settings: RunSettings, seed: int = 0, max_frames: int = 1_000) -> Recording:
    """One greedy episode from its start, up to `max_frames` pictures."""
    if max_frames < 1:
        raise SettingsError(f"`max_frames` is {max_frames}, expected at least 1")
    frames: list[Array] = []
    moments = play_episodes(agent, settings.env, 1, seed, trust=settings.trust, pictures=True)
    for episode in moments:
        frames.append(even(episode.scene.frame()))
        if len(frames) == max_frames:
            break
    result = Recording(frames, episode.as_data(), episode.scene.fps)
    moments.close()
    return result


def even(frame: Array) -> Array:
    """The picture with even width and height, as video needs them; a last row or column is doubled for it."""
    height, width, _ = frame.shape
    if height % 2 or width % 2:
        frame = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    return np.ascontiguousarray(frame)


class FrameFolder:
    """`000001.png` and so on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        if folder.exists() and (not folder.is_dir() or any(folder.glob("*.png"))):
            what = "has pictures in it already" if folder.is_dir() else "is a file"
            raise SettingsError(f"`{folder}` {what}", "give a new folder: `--frames FOLDER`")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"cannot make the folder `{folder}`: {error.strerror}") from None

    def add(self, frame: Array) -> None:
        self._count += 1
        path = self._folder / f"{self._count:06d}.png"
        try:
            write_png(path, frame)
        except OSError as error:
            raise RunError(f"cannot write `{path}`: {error.strerror}", "give another folder") from None
