"""Episodes into files as they are played, nothing kept in memory."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from hotloop.core.types import Array
from hotloop.show.frames import FrameFolder, even
from hotloop.show.play import Episode
from hotloop.show.video import Video, ffmpeg, kind_of

LINGER_SECONDS = 0.7  # of the video, on how an episode ended


class Recorder:
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

    def __enter__(self) -> Recorder:
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
