"""MP4 and GIF: frames are piped to the ffmpeg that comes with imageio-ffmpeg (extra `video`)."""

from __future__ import annotations

import importlib
import subprocess
import tempfile
from pathlib import Path

from hotloop.core.errors import MissingExtraError, RunError, SettingsError
from hotloop.core.program import install_command
from hotloop.core.types import Array

HIGHEST_FPS = {".mp4": 60.0, ".gif": 50.0}
"""By kind of file. A faster game is shown as fast, with frames left out; GIFs count hundredths of a second, and two
of them are the least that viewers honour."""


class Video:
    """Takes frames of one size (even width and height); the file is there once the `with` block is left without an
    error, and never half of it."""

    def __init__(self, path: Path, fps: float) -> None:
        self._path, self._kind, self._fps = path, kind_of(path), fps
        self._ffmpeg = ffmpeg()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._folder = tempfile.TemporaryDirectory(dir=path.parent, prefix=".video-")
        except OSError as error:
            raise SettingsError(f"cannot write to `{path.parent}`: {error.strerror}") from None

    def __enter__(self) -> Video:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if self._process is not None:
                self._close(complete=kind is None)
        finally:
            self._folder.cleanup()

    def add(self, frame: Array) -> None:
        if self._process is None:
            self._process = self._start(*frame.shape[:2])
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(frame.tobytes())
        except BrokenPipeError:
            self._process.wait()
            raise self._failed() from None

    def _start(self, height: int, width: int) -> subprocess.Popen[bytes]:
        raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{self._fps:g}", "-i", "-"]
        thinned = ["-vf", f"fps={min(self._fps, HIGHEST_FPS[self._kind]):g}"]
        # A GIF's palette needs all frames before the first is written: they wait in a file, not in memory.
        rgb = ["-c:v", "libx264rgb", "-preset", "ultrafast", "-qp", "0"]
        mp4 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart"]
        command = [*self._quiet(), *raw, *thinned, *(mp4 if self._kind == ".mp4" else rgb), self._part("frames.mp4")]
        with open(self._part("errors.txt"), "wb") as errors:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)

    def _close(self, complete: bool) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.close()
        except BrokenPipeError:
            process.wait()
        if not complete:
            process.kill()
            process.wait()
            return
        if process.wait() != 0:
            raise self._failed()
        self._finish()

    def _finish(self) -> None:
        made = "frames.mp4"
        if self._kind == ".gif":
            made = "made.gif"
            self._run(["-i", self._part("frames.mp4"), "-vf", "palettegen=stats_mode=full", self._part("palette.png")])
            both = ["-i", self._part("frames.mp4"), "-i", self._part("palette.png")]
            self._run([*both, "-lavfi", "paletteuse=dither=none:diff_mode=rectangle", "-loop", "0", self._part(made)])
        try:
            Path(self._part(made)).replace(self._path)
        except OSError as error:
            raise SettingsError(f"cannot write `{self._path}`: {error.strerror}") from None

    def _run(self, words: list[str]) -> None:
        with open(self._part("errors.txt"), "wb") as errors:
            done = subprocess.run([*self._quiet(), *words], stdin=subprocess.DEVNULL, stderr=errors)
        if done.returncode != 0:
            raise self._failed()

    def _quiet(self) -> list[str]:
        return [self._ffmpeg, "-y", "-hide_banner", "-loglevel", "error"]

    def _part(self, name: str) -> str:
        return str(Path(self._folder.name) / name)

    def _failed(self) -> RunError:
        said = Path(self._part("errors.txt")).read_text(errors="replace").strip().splitlines()
        return RunError(f"ffmpeg could not write `{self._path}`: {said[-1] if said else 'it did not say why'}")


def kind_of(path: Path) -> str:
    kind = path.suffix.lower()
    if kind not in HIGHEST_FPS:
        raise SettingsError(f"`--video {path}` names no kind of video that we write", "FILE.mp4 or FILE.gif")
    return kind


def ffmpeg() -> str:
    """Where the program is."""
    try:
        return importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except ImportError:
        raise MissingExtraError(
            "videos need imageio-ffmpeg, which is not installed", install_command("video")
        ) from None
    except RuntimeError as error:  # a platform for which it brings no program
        raise MissingExtraError(str(error), "install ffmpeg and set IMAGEIO_FFMPEG_EXE to it") from None
