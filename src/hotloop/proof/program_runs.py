"""Runs somebody's program under the recorder, unmodified, in a copy of its folder: what it computed, what it did around
one event, or how long it took."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError, SettingsError
from hotloop.core.temporary import TemporaryFolder
from hotloop.doctor.recorder.env_rows import FIELDS as WRITTEN
from hotloop.doctor.recorder.order import FINGERPRINTS, PACE, Order
from hotloop.doctor.script import copies
from hotloop.doctor.script.process import Ended, Where, run_child
from hotloop.proof.programs import EnvCall, Noted, Parameter, ProgramRecording, Update

FOREVER = 1e9
HASH_SEED = "PYTHONHASHSEED"
LOST = ("Tracing.", "a step", "a learner's update", "an optimizer")
"""Faults of the recorder after which it no longer saw everything."""


@dataclass(frozen=True, kw_only=True)
class RecordedProgram:
    """A script and how it is run."""

    path: Path
    arguments: tuple[str, ...] = ()
    python: str
    env_steps: int | None = None
    """It is ended after so many; None: it ends itself."""
    seconds: float = FOREVER
    """From its first env step on."""
    patience: float = 600.0
    """Seconds to wait for its first env step."""
    in_place: bool = False

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class Followed:
    """What a program did, and what the recorder noted besides."""

    recording: ProgramRecording
    data: Mapping[str, Any]

    @property
    def closeup(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.data.get("closeup", {})
        return found


def follow(program: RecordedProgram, *, near: bool, look_at: str = "", look_for: str = "") -> Followed:
    """Run it and read what it did; with `look_at`, to that event, whose values are kept."""
    with TemporaryFolder("prove") as folder:
        lines = folder / "lines"
        order = _order(program, FINGERPRINTS)
        order = replace(order, lines=str(lines), near=near, look_at=look_at, look_for=look_for)
        ended = _run(program, order)
        recording = read_lines(lines) if lines.exists() else ProgramRecording()
    data = _require_seen(program, ended) if not look_at else _require_ended(program, ended)
    limited = data["subject"]["ending"] == "limit"
    return Followed(replace(recording, limited=limited), data)


@dataclass(frozen=True)
class RunPace:
    """Seconds from a program's first env step to its end; processor time is that of its children too."""

    wall: float
    processor: float
    children_counted: bool
    """Whether living children could be looked at."""

    def seconds(self, clock: str) -> float:
        return self.wall if clock == "wall" else self.processor


def pace(program: RecordedProgram) -> RunPace:
    data = _require_ended(program, _run(program, _order(program, PACE)))
    return RunPace(float(data["wall_seconds"]), float(data["processor_seconds"]), bool(data["children_counted"]))


def _order(program: RecordedProgram, kind: str) -> Order:
    return Order(
        script="",
        kind=kind,
        seconds=program.seconds,
        result="",
        arguments=program.arguments,
        env_steps=program.env_steps,
        patience=program.patience,
    )


def _run(program: RecordedProgram, order: Order) -> Ended:
    environment = {HASH_SEED: os.environ.get(HASH_SEED, "0")}
    with _place(program) as (script, folder):
        where = Where(
            python=program.python, folder=folder, quiet=True, stdin=subprocess.DEVNULL, environment=environment
        )
        ended = run_child(replace(order, script=str(script)), where)
    if ended.interrupted:
        raise KeyboardInterrupt
    return ended


@contextlib.contextmanager
def _place(program: RecordedProgram) -> Iterator[tuple[Path, Path | None]]:
    """A fresh copy each time: what one run wrote, the next must not read."""
    if program.in_place:
        yield program.path, None
        return
    with copies.script_in_copy(program.path) as found:
        if found is None:
            size = f"{copies.MOST_BYTES >> 20} MB or {copies.MOST_FILES:,} files"
            raise SettingsError(
                f"the folder of {program.path} has more than {size}, too much to copy for each run",
                "`--in-place` runs the programs where they are; they must not read what they write",
            )
        yield found


def _require_ended(program: RecordedProgram, ended: Ended) -> Mapping[str, Any]:
    if ended.data is None or not ended.whole:
        how = "did not end and was killed" if ended.killed else f"ended with {ended.code} and left nothing behind"
        raise RunError(f"{program.name} {how}", _by_hand(program))
    subject = ended.data.get("subject", {})
    if subject.get("ending") not in ("limit", "finished") and subject.get("exit_code") != 0:
        said = subject.get("error") or f"exit code {subject.get('exit_code')}"
        done = f" after {ended.data['env_steps']:,} env steps" if ended.data.get("env_steps") else ""
        raise RunError(f"{program.name} ended with an error{done}: {said}", _by_hand(program))
    return ended.data


def _require_seen(program: RecordedProgram, ended: Ended) -> Mapping[str, Any]:
    data = _require_ended(program, ended)
    lost = [fault for fault in data.get("faults", ()) if fault.startswith(LOST)]
    if lost:
        raise RunError(f"what {program.name} does could not be followed: {lost[0]}", "this is a fault of hotloop's")
    return data


def _by_hand(program: RecordedProgram) -> str:
    return f"run it by itself: `{Path(program.python).name} {' '.join([str(program.path), *program.arguments])}`"


def read_lines(path: Path) -> ProgramRecording:
    """What `doctor/recorder/tracing.py` wrote."""
    calls: list[EnvCall] = []
    updates: list[Update] = []
    places = {"0": ""}
    parameters: dict[int, list[Parameter]] = {}
    names: dict[int, tuple[str, ...]] = {}
    env_steps = 0
    with path.open(encoding="utf-8") as file:
        for moment, line in enumerate(file):
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "E":
                env, step, place, text = rest.split(" ", 3)
                env_steps += 1
                calls.append(EnvCall(int(env), int(step), Noted(WRITTEN, text), moment, line=places[place]))
            elif kind == "R":
                env, step, ordinal, place, text = rest.split(" ", 4)
                noted = Noted(WRITTEN[:1], text)
                calls.append(EnvCall(int(env), int(step), noted, moment, True, int(ordinal), places[place]))
            elif kind == "U":
                number, update, count, place, text = rest.split(" ", 4)
                noted = Noted(names[int(number)], text)
                made = Update(int(update), noted, moment, places[place], int(number), int(count), env_steps)
                updates.append(made)
            elif kind == "P":
                number, text = rest.split(" ", 1)
                found = [Parameter(one["name"], tuple(one["shape"])) for one in json.loads(text)]
                parameters[int(number)], names[int(number)] = found, tuple(one.name for one in found)
            elif kind == "L":
                number, where = rest.split(" ", 1)
                places[number] = where
    return ProgramRecording(calls, updates, parameters)
