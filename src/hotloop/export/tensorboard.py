"""Event rows for TensorBoard."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.export.extras import need
from hotloop.export.follow import Once
from hotloop.runs.directory import SETTINGS, Run
from hotloop.runs.files import make_folder, read_file, write_file
from hotloop.runs.plain import MAX_SETTINGS_BYTES
from hotloop.runs.plain import read_json_table

STATE = "hotloop.json"
"""Beside the event files: of which run they are, and how far it was read."""


class TensorBoard:
    """Writes into `folder`; where it holds rows of this run already, only what came after them."""

    def __init__(self, run: Run, folder: Path) -> None:
        (library,) = need("tensorboard", "logging to TensorBoard", "tensorboardX")
        about = run.read_json("run.json")
        self._identity = {"label": about.get("label"), "started": about.get("started")}
        self._state = folder / STATE
        self.once = Once(self._reached())
        make_folder(folder)
        # the library names its files by the second: without a suffix, two of one second would be one
        self._open = lambda: library.SummaryWriter(str(folder), filename_suffix=f".{os.urandom(4).hex()}")
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
        if self._writer is None:
            self._writer = self._open()
            if self._settings:
                text = "    " + self._settings.replace("\n", "\n    ")  # indented: shown as code
                self._writer.add_text("settings", text, 0, wall_time)
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, env_steps, wall_time)

    def flush(self) -> None:
        """The rows first: a crash between the two shows some twice, never loses one."""
        if self._writer is None:
            return
        self._writer.flush()
        write_file(self._state, json.dumps({"run": self._identity, "reached": self.once.reached}).encode())

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _text_of(path: Path) -> str:
    """To be shown beside the curves, damaged or not."""
    return read_file(path, MAX_SETTINGS_BYTES).decode(errors="replace")
