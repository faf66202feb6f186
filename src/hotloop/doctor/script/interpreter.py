"""Which Python runs the script: the one its user lives in, not ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.errors import SettingsError

OLDEST = (3, 8)
PROGRAM = "import json, platform, sys; print(json.dumps([platform.python_implementation(), sys.version_info[:3]]))"


@dataclass(frozen=True)
class Interpreter:
    path: str
    why: str
    """How it came to be this one."""
    name: str
    """As people say it: `Python 3.9.2`, `PyPy 3.9.16`."""

    def __str__(self) -> str:
        return f"{self.name}, {self.path} ({self.why})"


def choose_interpreter(wanted: str | Path | None = None, environment: Mapping[str, str] | None = None) -> Interpreter:
    """The one that is `wanted`, or the active virtual or Conda environment's, else our own."""
    environment = os.environ if environment is None else environment
    for path, why in _candidates(wanted, environment):
        found = _ask(path)
        if found is not None:
            name, version = found
            if version >= OLDEST:
                return Interpreter(path, why, f"{name} {'.'.join(map(str, version))}")
            problem = f"{path} is {name} {version[0]}.{version[1]}"
        else:
            problem = f"{path} is no Python that can be started"
        if wanted is not None:
            raise SettingsError(problem, "give a Python 3.8 or newer: `--python .venv/bin/python`")
    return Interpreter(sys.executable, "hotloop's own", f"Python {sys.version.split()[0]}")


def _candidates(wanted: str | Path | None, environment: Mapping[str, str]) -> list[tuple[str, str]]:
    if wanted is not None:
        path = Path(wanted).expanduser()
        return [(str(_python_in(path) if path.is_dir() else Path(os.path.abspath(path))), "--python")]
    found = []
    if environment.get("VIRTUAL_ENV"):
        found.append((str(_python_in(Path(environment["VIRTUAL_ENV"]))), "VIRTUAL_ENV"))
    if environment.get("CONDA_PREFIX") and environment.get("CONDA_DEFAULT_ENV", "base") != "base":
        found.append((str(_python_in(Path(environment["CONDA_PREFIX"]))), "CONDA_PREFIX"))
    return found


def _python_in(folder: Path) -> Path:
    """Of an environment's folder."""
    places = (folder / "bin" / "python", folder / "Scripts" / "python.exe", folder / "python.exe")
    return next((path for path in places if path.exists()), places[0]).absolute()


def _ask(path: str) -> tuple[str, tuple[int, ...]] | None:
    """Its name and version; None where it cannot be started."""
    try:
        done = subprocess.run([path, "-I", "-c", PROGRAM], capture_output=True, text=True, timeout=60.0)
        name, version = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return ("Python" if name == "CPython" else name), tuple(version)
