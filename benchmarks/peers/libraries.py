"""Which other libraries are here, and where each is looked for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hotloop.core.errors import MissingExtraError, SettingsError
from hotloop.core.program import install_command
from hotloop.core.values import nearest

INSTALL = install_command("peers")
JAX = ("sbx-rl", "rejax")
"""In an environment of their own: their jax and ours need not agree on anything."""
LIBRARIES = ("stable-baselines3", "rlox", "cpprb", "tianshou", *JAX)
ALGORITHMS = ("dqn", "ppo", "sac")
TRAINING = "training"
"""All of them."""
PARTS = ("replay", *ALGORITHMS)
ASK_VERSIONS = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Library:
    name: str
    version: str
    python: str
    """The interpreter that has it."""


@dataclass(frozen=True)
class Found:
    libraries: list[Library]
    missing: dict[str, str] = field(default_factory=dict)
    """Name -> what to do about it."""

    @property
    def notes(self) -> list[str]:
        return [f"{name}: {advice}" for name, advice in self.missing.items()]


def split_names(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parts and the libraries that `names` ask for; all of a kind where none of it is named."""
    known = (*PARTS, TRAINING, *LIBRARIES)
    for name in names:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean `{near}`?" if near else f"one of {', '.join(known)}"
            raise SettingsError(f"there is no library and no part `{name}`", hint)
    parts = tuple(part for part in PARTS if part in names or (part in ALGORITHMS and TRAINING in names))
    libraries = tuple(library for library in LIBRARIES if library in names)
    return parts or PARTS, libraries or LIBRARIES


def find_libraries(names: Sequence[str], python_jax: str = "") -> Found:
    """Those of `names` that can be imported, here or by `python_jax`; an error only where there is none at all."""
    found, missing = [], {}
    elsewhere = _versions_of(python_jax, [name for name in names if name in JAX]) if python_jax else {}
    for name in names:
        if name in elsewhere:
            found.append(Library(name, elsewhere[name], python_jax))
        elif here := _version_here(name):
            found.append(Library(name, here, sys.executable))
        else:
            missing[name] = _advice(name, python_jax)
    if not found:
        raise MissingExtraError(f"none of {', '.join(names)} is installed", next(iter(missing.values()), INSTALL))
    return Found(found, missing)


def _advice(name: str, python_jax: str) -> str:
    if name not in JAX:
        return f"not installed: {INSTALL}"
    if python_jax:
        return f"not installed for {python_jax}"
    return f"wants an environment of its own: pip install {name} there and name it with --python-jax PATH/bin/python"


def _version_here(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _versions_of(python: str, names: Sequence[str]) -> dict[str, str]:
    if not Path(python).exists():
        raise SettingsError(f"`--python-jax` is {python}, where there is no interpreter", "give PATH/bin/python")
    done = subprocess.run([python, "-I", "-c", ASK_VERSIONS, *names], capture_output=True, text=True)
    if done.returncode:
        raise SettingsError(f"`--python-jax` is {python}, which does not run Python", "give PATH/bin/python")
    return dict(json.loads(done.stdout))
