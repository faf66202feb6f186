"""Episodes as pictures: in memory for a page, or one PNG file each.

Episodes into files as they are played, nothing kept in memory.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.core.errors import RunError, SettingsError
from hotloop.core.types import Array, Policy
from hotloop.presets.registry import RunSettings
from hotloop.render.picture import png_bytes
from hotloop.viewing.play import Episode, play_episodes
from hotloop.viewing.video import Video, ffmpeg, kind_of


@dataclass(frozen=True)
class FrameRecording:
    frames: list[Array]  # [height, width, 3] uint8 each, even sizes; the first one is the start
    stats: dict[str, Any]  # return, length, the workload's own; `end` is `stopped` where `max_frames` cut it
    fps: float


def record(agent: Policy, settings: RunSettings, seed: int = 0, max_frames: int = 1_000) -> FrameRecording:
    """One greedy episode from its start, up to `max_frames` pictures."""
    if max_frames < 1:
        raise SettingsError(f"`max_frames` is {max_frames}, expected at least 1")
    frames: list[Array] = []
    moments = play_episodes(agent, settings.env, 1, seed, trust=settings.trust, pictures=True)
    for episode in moments:
        frames.append(even(episode.scene.frame()))
        if len(frames) == max_frames:
            break
    result = FrameRecording(frames, episode.as_data(), episode.scene.fps)
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
            path.write_bytes(png_bytes(frame))
        except OSError as error:
            raise RunError(f"cannot write `{path}`: {error.strerror}", "give another folder") from None


LINGER_SECONDS = 0.7  # of the video, on how an episode ended


class FrameRecorder:
    """Writes a video, a folder of pictures, or both."""

    def __init__(self, video: Path | None, folder: Path | None, speed: float = 1.0, fps: float | None = None) -> None:
        self.frames = 0
        self.cut = False
        self._path, self._speed, self._fps = video, speed, fps
        self._video: Video | None = None
        if video is not None:  # mistakes show before anything is played
            kind_of(video)
            ffmpeg()
        self._folder = None if folder is None else FrameFolder(folder)

    def __enter__(self) -> FrameRecorder:
        return self

    def __exit__(self, *error: object) -> None:
        if self._video is not None:
            self._video.__exit__(error[0] if error else None)

    def take(self, moments: Generator[Episode, None, None], max_frames: int) -> Generator[Episode, None, None]:
        """Hand the moments on, each recorded; stop after `max_frames`."""
        for episode in moments:
            self._add(even(episode.scene.frame()), episode)
            yield episode
            if self.frames >= max_frames:
                break
        self.cut = not episode.end
        moments.close()

    def _add(self, frame: Array, episode: Episode) -> None:
        self.frames += 1
        if self._folder is not None:
            self._folder.add(frame)
        if self._path is None:
            return
        fps = self._fps or episode.scene.fps * self._speed
        if self._video is None:
            self._video = Video(self._path, fps)
        for _ in range(1 + round(LINGER_SECONDS * fps) if episode.end else 1):
            self._video.add(frame)
