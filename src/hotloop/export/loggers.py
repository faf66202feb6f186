"""`log_run`: event rows in TensorBoard and in Weights & Biases.

TensorBoard's files are made by the writer of records that tensorboardX has inside: its `SummaryWriter` hands everything
to a thread that dies silently where the disk is full, and then waits for it for ever. The writer inside writes in this
thread, and what it raises arrives here. For Weights & Biases `WANDB_MODE=offline` and the library's other variables
count as usual.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError, SettingsError
from hotloop.core.extras import need
from hotloop.core.settings import MAX_SETTINGS_BYTES
from hotloop.export.follow import Feed, Once, result_row, rows_until_the_end
from hotloop.runs.directory import SETTINGS, Run
from hotloop.runs.files import explained, make_folder, read_file, read_json_table, write_file


@dataclass(frozen=True)
class Logged:
    """What `log_run` did."""

    run: str
    to: str
    rows: int
    scalars: int
    env_steps: int
    """How far the run is shown."""
    finished: bool
    """Whether the run is."""
    interrupted: bool = False

    def as_data(self) -> dict[str, Any]:
        """The object that `hotloop log --json` prints."""
        return {name: value for name, value in asdict(self).items() if name != "interrupted"}


def log_run(
    run_dir: str | Path, *, tensorboard: str | Path | None = None, wandb: str = "", follow: bool = False
) -> Logged:
    """Show a run's event rows in the folder `tensorboard` or in the project `wandb` of Weights & Biases, each row once.

        log_run("runs/cartpole-dqn-20260101-120000", tensorboard="boards/cartpole", follow=True).rows

    With `follow` also those to come, until the run is finished or stopped, or Ctrl-C is pressed. Called again, it adds
    what is new.
    """
    if bool(wandb) == (tensorboard is not None):
        raise SettingsError("rows go to one place at a time", "give `tensorboard` or `wandb`")
    run = Run.open(run_dir)
    logger = WeightsAndBiases(run, wandb) if tensorboard is None else TensorBoard(run, Path(tensorboard))
    feed, interrupted = Feed(logger, logger.once), False
    try:
        for rows in rows_until_the_end(run, follow=follow):
            feed.take(rows)
        if run.finished:
            feed.take([result_row(run.result())])
    except KeyboardInterrupt:
        interrupted = True
    finally:
        logger.close()
    reached = max(logger.once.reached.values(), default=0)
    to = f"wandb {wandb}" if wandb else str(tensorboard)
    return Logged(str(run_dir), to, feed.rows, feed.scalars, reached, run.finished, interrupted)


STATE = "hotloop.json"
"""Beside the event files: of which run they are, and how far it was read."""


class TensorBoard:
    """Writes into `folder`; where it holds rows of this run already, only what came after them."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._library = _Library(*need("tensorboard", "logging to TensorBoard", *_Library.MODULES)[1:])
        about = run.read_json("run.json")
        self._identity = {"label": about.get("label"), "started": about.get("started")}
        self._state = folder / STATE
        self.once = Once(self._reached())
        make_folder(folder)
        self._folder = folder
        self._writer: Any = None  # none until there is something to write: each makes a file
        self._settings = "" if self.once.reached else _text_of(run.path / SETTINGS)

    def _reached(self) -> dict[str, int]:
        if not self._state.exists():
            return {}
        state = read_json_table(self._state)
        if state.get("run") != self._identity:
            raise RunError(
                f"{self._state.parent} holds another run: {state.get('run')}", "choose a folder for each run"
            )
        return {str(kind): int(env_steps) for kind, env_steps in state.get("reached", {}).items()}

    def write(self, scalars: Mapping[str, float], env_steps: int, wall_time: float) -> None:
        library = self._library
        with self._explained():
            if self._writer is None:
                self._writer = library.open(self._folder)
                if self._settings:
                    text = "    " + self._settings.replace("\n", "\n    ")  # indented: shown as code
                    self._writer.write_event(library.event(library.summary.text("settings", text), 0, wall_time))
            for name, value in scalars.items():
                self._writer.write_event(library.event(library.summary.scalar(name, value), env_steps, wall_time))

    def flush(self) -> None:
        """The rows first: a crash between the two shows some twice, never loses one."""
        if self._writer is None:
            return
        with self._explained():
            self._writer.flush()
        write_file(self._state, json.dumps({"run": self._identity, "reached": self.once.reached}).encode())

    def close(self) -> None:
        if self._writer is not None:
            with self._explained():
                self._writer.close()

    def _explained(self) -> AbstractContextManager[None]:
        return explained("write", self._folder if self._writer is None else Path(self._writer._file_name))


class _Library:
    """What is used of tensorboardX."""

    MODULES = ("tensorboardX", "tensorboardX.event_file_writer", "tensorboardX.summary", "tensorboardX.proto.event_pb2")

    def __init__(self, files: Any, summary: Any, events: Any) -> None:
        self._files, self.summary, self._events = files, summary, events

    def open(self, folder: Path) -> Any:
        # files are named by the second: without a suffix, two of one second would be one
        return self._files.EventsWriter(str(folder / "events"), f".{os.urandom(4).hex()}")

    def event(self, summary: Any, env_steps: int, wall_time: float) -> Any:
        return self._events.Event(summary=summary, step=env_steps, wall_time=wall_time)


def _text_of(path: Path) -> str:
    """To be shown beside the curves, damaged or not."""
    return read_file(path, MAX_SETTINGS_BYTES).decode(errors="replace")


WANDB_STATE = "wandb.json"
"""In the run: how far it was logged, by project."""


class WeightsAndBiases:
    """Logs into `[ENTITY/]PROJECT` under an id that follows from the run, so that logging again continues there."""

    def __init__(self, run: Run, project: str) -> None:
        (library,) = need("wandb", "logging to Weights & Biases", "wandb")
        self._run, self._project = run, project
        self._all = run.read_json(WANDB_STATE).get("projects", {}) if (run.path / WANDB_STATE).exists() else {}
        self.once = Once(self._all.get(project))
        about = run.read_json("run.json")
        identity = f"{about.get('label')} {about.get('started')} {run.path.name}"
        entity, _, name = project.rpartition("/")
        try:
            self._logged: Any = library.init(
                project=name,
                entity=entity or None,
                id=hashlib.sha256(identity.encode()).hexdigest()[:12],
                name=run.path.name,
                config=run.settings(),
                resume="allow",
            )
            self._logged.define_metric("*", step_metric="env_steps")
        except Exception as error:  # the library has many kinds, and asks for a key in its own way
            raise RunError(
                f"Weights & Biases did not start: {error}",
                "WANDB_MODE=offline records without a network (`wandb sync` sends it later); `wandb login` sets a key",
            ) from error

    def write(self, scalars: Mapping[str, float], env_steps: int, wall_time: float) -> None:
        self._logged.log({**scalars, "env_steps": env_steps}, step=env_steps)

    def flush(self) -> None:
        self._run.write_json(WANDB_STATE, {"projects": {**self._all, self._project: self.once.reached}})

    def close(self) -> None:
        self._logged.finish()
