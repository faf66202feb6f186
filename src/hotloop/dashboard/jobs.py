"""What the page lets `hotloop` do: play an agent, and with `--control` stop, resume, extend and evaluate runs.

Each is a subprocess of `hotloop`, started with a list of words and no shell. What it trains goes on when the dashboard
ends; what it plays lies in a folder of its own, which goes with it.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from hotloop.core.children import HOTLOOP, own_child
from hotloop.core.errors import RunError
from hotloop.core.program import ONE_THREAD
from hotloop.core.temporary import TemporaryFolder
from hotloop.dashboard.machine import trainer_of

MOST_PLAYING, MOST_KEPT, MOST_FRAMES = 2, 12, 600
LONGEST_PLAY_SECONDS = 300.0
_MOST_OUTPUT = 20_000
STOPPING = (
    "It was asked to stop. Where its env can save its state, it saves a checkpoint first; otherwise resuming continues "
    "from the newest checkpoint that is listed here."
)


@dataclass
class Job:
    """`state` is `running`, `done` or `failed`; `said` is the end of what it printed."""

    id: str
    kind: str
    run: str  # the id of the run it is about
    words: list[str]
    state: str = "running"
    said: str = ""
    result: Any = None
    began: float = field(default_factory=time.time)
    folder: Path | None = None
    key: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        frames = len(self.frames()) if self.folder is not None and self.state == "done" else 0
        shown = {name: getattr(self, name) for name in ("id", "kind", "run", "state", "said", "result", "began")}
        return shown | {"frames": frames, "command": shlex.join(["hotloop", *self.words])}

    def frames(self) -> list[Path]:
        return sorted(self.folder.glob("*.png"))[:MOST_FRAMES] if self.folder is not None else []


class Jobs:
    """`on_change` is told whenever one begins or ends."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._on_change = on_change
        self._temporary = TemporaryFolder("dashboard")
        self._base = self._temporary.path
        self._playing: dict[str, subprocess.Popen[bytes]] = {}

    def close(self) -> None:
        """End what plays; training goes on."""
        for process in list(self._playing.values()):
            with suppress(OSError):
                process.kill()
        self._temporary.close()

    def all(self) -> list[Job]:
        with self._lock:
            return list(self._jobs.values())

    def get(self, id: str) -> Job | None:
        with self._lock:
            return self._jobs.get(id)

    def play(self, run: str, path: Path, checkpoint: str, seed: int) -> Job:
        """An episode as pictures; asked for twice it is played once."""
        key = ("play", run, checkpoint, str(seed), str(_newest_change(path)))
        for job in self.all():
            if job.key == key and job.state != "failed":
                return job
        if len(self._playing) >= MOST_PLAYING:
            raise RunError(f"{MOST_PLAYING} agents are playing already", "wait until one of them is done")
        folder = self._base / secrets.token_hex(8)
        words = ["watch", str(path), "--frames", str(folder), "--max-frames", str(MOST_FRAMES), "--seed", str(seed)]
        words += ["--json", *(["--checkpoint", checkpoint] if checkpoint else [])]
        job = self._add(Job(secrets.token_hex(8), "play", run, words, folder=folder, key=key))
        self._start(job, limit=LONGEST_PLAY_SECONDS)
        return job

    def stop(self, run: str, path: Path) -> Job:
        """As Ctrl-C would: the run ends, and saves a checkpoint first where its env can save its state."""
        process = trainer_of(path)
        if process is None:
            raise RunError("no process of this machine trains this run", "it may have ended in the meantime")
        try:
            process.send_signal(signal.SIGTERM)
        except psutil.Error as error:
            raise RunError(f"the run cannot be stopped: {error}", "stop it where it was started") from None
        job = self._add(Job(secrets.token_hex(8), "stop", run, ["stop", str(path)], state="done"))
        job.said = STOPPING
        return job

    def resume(self, run: str, path: Path, total_env_steps: int | None = None) -> Job:
        more = [] if total_env_steps is None else ["--total-env-steps", str(total_env_steps)]
        kind = "resume" if total_env_steps is None else "extend"
        return self._train(kind, run, ["resume", str(path), "--quiet", *more])

    def evaluate(self, run: str, path: Path, episodes: int) -> Job:
        job = Job(secrets.token_hex(8), "evaluate", run, ["evaluate", str(path), "--episodes", str(episodes), "--json"])
        self._add(job)
        self._start(job, limit=3_600.0)
        return job

    def _train(self, kind: str, run: str, words: Sequence[str]) -> Job:
        job = self._add(Job(secrets.token_hex(8), kind, run, list(words)))
        self._start(job, limit=None)
        return job

    def _add(self, job: Job) -> Job:
        with self._lock:
            self._jobs[job.id] = job
            ended = [old for old in self._jobs.values() if old.state != "running"]
            for old in ended[: max(0, len(ended) - MOST_KEPT)]:
                self._jobs.pop(old.id)
                if old.folder is not None:
                    shutil.rmtree(old.folder, ignore_errors=True)
        return job

    def _start(self, job: Job, limit: float | None) -> None:
        threading.Thread(target=self._run, args=(job, limit), name=f"dashboard {job.kind}", daemon=True).start()
        self._on_change()

    def _run(self, job: Job, limit: float | None) -> None:
        """What is printed goes to a file: a pipe would break when the dashboard ends before the training."""
        log = self._base / f"{job.id}.log"
        answer = self._base / f"{job.id}.json"
        try:
            with open(log, "wb") as errors, open(answer, "wb") as answers:
                process = subprocess.Popen(
                    own_child(HOTLOOP, *job.words),
                    stdin=subprocess.DEVNULL,
                    stdout=answers,
                    stderr=errors,
                    start_new_session=True,
                    env={**os.environ, **({} if limit is None else dict.fromkeys(ONE_THREAD, "1")), "NO_COLOR": "1"},
                )
                if limit is not None:
                    self._playing[job.id] = process
                _end_within(process, limit)
            job.said = _end_of(log)
            job.result = _parsed(answer) if limit is not None else None
            job.state = "done" if process.returncode == 0 else "failed"
        except OSError as error:
            job.state, job.said = "failed", f"it cannot be started: {error.strerror}"
        finally:
            self._playing.pop(job.id, None)
            self._on_change()


def _end_within(process: subprocess.Popen[bytes], limit: float | None) -> None:
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_of(path: Path) -> str:
    with suppress(OSError):
        return path.read_bytes()[-_MOST_OUTPUT:].decode(errors="replace").strip()[-2_000:]
    return ""


def _parsed(path: Path) -> Any:
    with suppress(OSError, ValueError, RecursionError):
        return json.loads(path.read_bytes()[:1_000_000])
    return None


def _newest_change(path: Path) -> int:
    """A newer checkpoint is another agent."""
    with suppress(OSError):
        return os.stat(path / "checkpoints").st_mtime_ns
    return 0
