"""Arms that are commands: anybody's script, unmodified, each seed in a process of its own under the light recorder.

The recorder (`doctor/recorder/episodes.py`) leaves a line for every episode that ends; the arm is judged by these
training returns. What a program writes by itself can be read instead (`scores.py`).
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.doctor.script.process import CHILD
from hotloop.runs.files import explained
from hotloop.scale.work import ORDER, prepare_order, script_is_finished

SEED = "{seed}"


@dataclass(frozen=True)
class Script:
    """`[PYTHON] SCRIPT.py ARGUMENTS`, with `{seed}` somewhere among the arguments."""

    python: str
    path: Path
    arguments: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Of the script's own file: an edited script is another arm."""
        with explained("read", self.path):
            return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def settings(self) -> dict[str, Any]:
        """What tells it from another arm."""
        return {
            "script": str(self.path),
            "arguments": shlex.join(self.arguments),
            "python": self.python,
            "sha256": self.digest,
        }

    def with_seed(self, seed: int) -> tuple[str, ...]:
        return tuple(word.replace(SEED, str(seed)) for word in self.arguments)


def find_script(parts: Sequence[str]) -> Script | None:
    """The script that the words of an arm name; None where they name none."""
    python, rest = sys.executable, list(parts)
    if len(rest) > 1 and Path(rest[0]).name.startswith(("python", "pypy")) and rest[1].endswith(".py"):
        python = rest.pop(0)
    if not rest[0].endswith(".py"):
        return None
    path, arguments = Path(rest[0]), tuple(rest[1:])
    if not path.is_file():
        raise SettingsError(f"there is no script at {path}", "give the path of a Python file")
    if not any(SEED in word for word in arguments):
        raise SettingsError(
            f"the arm `{shlex.join(parts)}` has no `{SEED}` among its arguments: all its runs would be the same",
            f"`{path} --seed {SEED}`: each run gets its own number there",
        )
    return Script(python, path, arguments)


def script_command(script: Script, seed: int, folder: Path) -> tuple[str, ...]:
    """What runs it; its note to the recorder is written by `prepare_script`."""
    return (script.python, str(CHILD), str((folder / ORDER).absolute()))


def prepare_script(script: Script, seed: int, folder: Path) -> None:
    prepare_order(script.path, script.with_seed(seed), folder, {**script.settings(), "seed": seed})


def script_finished(script: Script, seed: int, folder: Path) -> bool:
    """Whether a run of it with this seed is there, whole. RunError where the folder holds another's."""
    return script_is_finished(script.settings(), seed, folder)


def training_envs(envs: Sequence[Mapping[str, Any]]) -> set[int]:
    """Numbers of the envs that the program learns from: those whose episodes updates come into; where there is none,
    those whose call is the last before an update; where nothing was learned, all."""
    for rule in ("interrupted", "before_update"):
        found = {int(env["number"]) for env in envs if env.get(rule)}
        if found:
            return found
    return {int(env["number"]) for env in envs}
