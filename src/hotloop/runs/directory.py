"""A run is a directory; `settings.toml` is what makes it one.

settings.toml  run.json  events.jsonl  checkpoints/  lock  result.json (once finished)  report, trace, ...
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from hotloop.core.errors import RunError
from hotloop.core.program import hotloop_version
from hotloop.core.settings import MAX_SETTINGS_BYTES, parse_toml
from hotloop.core.types import Array
from hotloop.core.vocabulary import SETTINGS_SCHEMA, upgraded
from hotloop.runs import lock
from hotloop.runs.files import (
    SCHEMA,
    explained,
    finite_or_null,
    fsync_folder,
    is_plain_file,
    is_temporary,
    make_folder,
    read_file,
    read_json_table,
    write_file,
)
from hotloop.runs.tensors import decode, encode

SETTINGS, ABOUT, RESULT, EVENTS, LOCK = "settings.toml", "run.json", "result.json", "events.jsonl", "lock"
NODE = "HOTLOOP_NODE"
"""The environment variable that names the machine of a cluster on which a run is begun."""
START, MAX_START_BYTES = "start.safetensors", 2**34
FAILURE = "failure"
"""The folder of an update whose numbers were not finite, where there was one."""
_JUDGED = ("episodes", "mean_return", "std_return")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.json")


def is_run(path: Path) -> bool:
    return (path / SETTINGS).is_file()


class Run:
    """A run directory that exists. Use as a context manager, or `close()` it, to release its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.events = path / EVENTS
        self._lock: int | None = None

    @classmethod
    def create(
        cls, run_dir: str | Path | None, label: str, settings: Mapping[str, Any], start: Array | None = None
    ) -> Run:
        """Make a new run directory, locked by this process; `runs/<label>-<date>-<time>` where none is given.

        `start` are weights to begin with, kept for a run that is stopped before its first checkpoint.
        """
        content = _settings_toml(settings)
        run = cls(_new_default(label) if run_dir is None else _new_given(Path(run_dir)))
        run.lock()
        try:
            _refuse_run(run.path)  # another trainer may have been faster, and finished
            started = datetime.now().astimezone().isoformat(timespec="seconds")
            elsewhere = {"node": os.environ[NODE]} if NODE in os.environ else {}
            run.write_json(ABOUT, {"label": label, "started": started, "hotloop": hotloop_version(), **elsewhere})
            if start is not None:
                write_file(run.path / START, b"".join(encode({"weights": start})))
            write_file(run.path / SETTINGS, content)  # last: from now on it is a run
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def open(cls, path: str | Path) -> Run:
        path = Path(path)
        if not is_run(path):
            what = "has no settings.toml, so it is not a run" if path.is_dir() else "is not a run directory"
            raise RunError(f"{path} {what}", _near_names(path))
        run = cls(path)
        if (path / ABOUT).exists():
            run.read_json(ABOUT)  # refuses a run of another schema before anything else is believed
        return run

    def lock(self, warn: Callable[[str], None] = lambda text: None) -> None:
        """Refuse a second trainer. Held until `close` or the end of this process; again is fine."""
        if self._lock is not None:
            return
        self._lock = lock.acquire(self.path / LOCK)
        with explained("read", self.path):
            leftovers = [path for path in self.path.iterdir() if is_temporary(path.name) and is_plain_file(path)]
        for path in leftovers:
            with suppress(OSError):
                path.unlink()
                warn(f"removed {path}: a write that was cut short left it")

    def close(self) -> None:
        if self._lock is not None:
            lock.release(self._lock)
            self._lock = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def settings(self) -> dict[str, Any]:
        path = self.path / SETTINGS
        try:
            tree = parse_toml(read_file(path, MAX_SETTINGS_BYTES))
        except ValueError as error:
            raise RunError(f"{path} is not valid TOML: {error}", "mend it by hand or restore it from a copy") from error
        return upgraded(tree, str(path))

    def rewrite_settings(self, settings: Mapping[str, Any]) -> None:
        write_file(self.path / SETTINGS, _settings_toml(settings))

    def set_result_aside(self, env_steps: int) -> None:
        """A finished run goes on: what it had come to after so many env steps is kept beside."""
        with explained("write", self.path):
            (self.path / RESULT).rename(self.path / f"result-{env_steps}.json")
            fsync_folder(self.path)

    def start_weights(self) -> Array | None:
        """What the network began with, where the seed did not draw it."""
        path = self.path / START
        if not path.exists():
            return None
        try:
            weights = decode(read_file(path, MAX_START_BYTES))["weights"]
        except (ValueError, KeyError) as error:
            raise RunError(f"{path} is damaged: {error}", "`hotloop train` begins anew") from error
        if weights.dtype != np.float32 or weights.ndim != 1:
            raise RunError(f"{path} holds no vector of float32", "`hotloop train` begins anew")
        return weights

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write `data` with the schema version in front; NaN and infinities become null."""
        content = {"schema": SCHEMA, **finite_or_null(data)}
        write_file(self._file(name), json.dumps(content, indent=2, allow_nan=False).encode() + b"\n")

    def read_json(self, name: str) -> dict[str, Any]:
        path = self._file(name)
        data = read_json_table(path)
        schema = data.pop("schema", None)
        if schema != SCHEMA:
            raise RunError(
                f"{path} has schema version {schema!r}; this hotloop reads version {SCHEMA}",
                "use the version of hotloop that wrote it (`hotloop` in run.json)",
            )
        return data

    @property
    def finished(self) -> bool:
        return (self.path / RESULT).is_file()

    def result(self) -> dict[str, Any]:
        """What a finished run came to; RunError where the file does not hold it."""
        result = self.read_json(RESULT)
        if problem := _problem_of(result):
            raise RunError(
                f"{self.path / RESULT} is damaged: {problem}",
                f"its checkpoints are there still: remove the file, and `hotloop resume {self.path}` makes it again",
            )
        return result

    def missing(self) -> str:
        """What it lacks to be a finished one; empty where its result is there, with the digest of its whole state."""
        if not self.finished:
            return "its process ended with exit code 0 and left no result: something in it ended the program"
        try:
            digest = self.result().get("digest")
        except RunError as error:
            return str(error)
        return "" if isinstance(digest, str) and digest else "its result has no digest"

    def _file(self, name: str) -> Path:
        if not _FILE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the plain name of a JSON file")
        return self.path / name


def _problem_of(result: Mapping[str, Any]) -> str:
    """What is wrong with a result, for whoever reads it; empty where nothing is."""
    for name in ("env_steps", "updates", "episodes", "seconds", "env_steps_per_second"):
        if not _is_number(result.get(name)):
            return f"`{name}` is no number"
    for name in ("run", "lane"):
        if not isinstance(result.get(name), str):
            return f"`{name}` is no text"
    for name in ("evaluation", "final_evaluation"):
        judged = result.get(name)
        if not isinstance(judged, dict) or not all(_is_number(judged.get(each)) for each in _JUDGED):
            return f"`{name}` lacks one of {', '.join(_JUDGED)}"
        if not all(value is None or _is_number(value) for value in judged.values()):
            return f"`{name}` holds something that is no number"
    phases = result.get("phases")
    tables = phases.values() if isinstance(phases, dict) else [None]
    for name in ("seconds", "share"):
        if not all(isinstance(each, dict) and _is_number(each.get(name)) for each in tables):
            return f"`phases` is no table of {name}"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _new_default(label: str) -> Path:
    stamp = f"{datetime.now():%Y%m%d-%H%M%S}"
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", label).strip("-.") or "run"
    root = Path("runs")
    make_folder(root)
    for attempt in range(1, 10_000):
        path = root / (f"{plain}-{stamp}" if attempt == 1 else f"{plain}-{stamp}-{attempt}")
        with explained("create", path):
            try:
                path.mkdir()  # exclusive: two trainers started in the same second get two directories
            except FileExistsError:
                continue
            fsync_folder(root)
        return path
    raise RunError(f"no free name for a run called {plain}-{stamp} in {root}", "name a directory yourself")


def _new_given(path: Path) -> Path:
    _refuse_run(path)
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file; a run needs a directory", "choose another run directory")
    make_folder(path)
    with explained("read", path):
        names = sorted(entry.name for entry in path.iterdir())
    # what a trainer killed inside `create` leaves is no reason to refuse
    foreign = [name for name in names if name not in (ABOUT, LOCK) and not is_temporary(name)]
    if foreign:
        raise RunError(
            f"{path} is not empty and not a run (it holds {', '.join(foreign[:3])})",
            "choose a new or an empty directory",
        )
    return path


def _refuse_run(path: Path) -> None:
    if is_run(path):
        raise RunError(f"{path} already holds a run", f"continue it with `hotloop resume {path}`, or choose another")


def _near_names(path: Path) -> str:
    names = []
    if path.parent.is_dir():
        names = [entry.name for entry in path.parent.iterdir() if is_run(entry)]
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(str(path.parent / name) for name in near) + "?"
    return "`hotloop runs` lists the runs there are"


def _settings_toml(settings: Mapping[str, Any]) -> bytes:
    return tomli_w.dumps({"schema": SETTINGS_SCHEMA, **settings}).encode()
