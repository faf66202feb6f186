"""A run as plain data, from which any machine can train it: settings or a script with its arguments, a seed, and the
files of the user's own that it needs, by content.

Two machines agree on a run by its settings as they were typed: a file of the user's keeps the path that it has at home,
and where it lies here is told to the process that trains (`core/user_files.py`). So settings, checkpoints and digests
are the same everywhere.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from hotloop.core.errors import RunError, SettingsError
from hotloop.core.settings import as_tree, flatten
from hotloop.core.user_files import is_file, split_file
from hotloop.presets.registry import settings_of
from hotloop.runs.directory import Run, is_run
from hotloop.runs.files import canonical_json, explained, opened, read_exactly

NOT_LEARNING = ("run_dir", "trust", "seed")
"""Settings in which two runs of an arm may differ (the seed is checked by itself)."""
OF_THIS_MACHINE = ("start_from", "replay.folder")
"""Settings that name a file or folder which another machine does not have."""
MOST_FILES, MOST_BYTES = 500, 16 * 2**20
_NOT_SHIPPED = ("__pycache__", "node_modules", "runs")

Files = dict[str, bytes]
"""Of one folder, by their names within it."""


def tree_of(path: Path) -> dict[str, Any]:
    """All settings of the run at `path` as a tree."""
    return as_tree(settings_of(Run.open(path)))


def differing(there: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Names of settings with which two trees would not learn the same, the seed aside."""
    one, other = flatten(learning_settings(there)), flatten(learning_settings(now))
    absent = object()
    return sorted(name for name in one.keys() | other.keys() if one.get(name, absent) != other.get(name, absent))


def learning_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in NOT_LEARNING}


def require_same(run: Run, settings: Mapping[str, Any], seed: int) -> None:
    """A run that was there before counts only if it is what would be trained now."""
    found = tree_of(run.path)
    there, now = flatten(found), flatten(settings) | {"seed": seed}
    names = differing(found, settings) + (["seed"] if found["seed"] != seed else [])
    if names:
        other = [f"{name} {there.get(name)!r} there, {now.get(name)!r} now" for name in names]
        raise RunError(
            f"{run.path} was trained with other settings: {'; '.join(other[:3])}",
            "choose another folder for this search or comparison, or remove that run",
        )


def run_spec(label: str, settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Of a run of ours. SettingsError where its settings name what only this machine has."""
    flat = flatten(settings)
    for name in OF_THIS_MACHINE:
        if flat.get(name):
            raise SettingsError(
                f"`{name}` is {flat[name]!r}, which other machines do not have", "leave it out, or train it here"
            )
    tree = {name: value for name, value in settings.items() if name not in NOT_LEARNING}
    return {"kind": "run", "label": label, "seed": seed, "settings": tree, "roots": _roots(settings)}


def script_spec(
    settings: Mapping[str, Any], path: Path, arguments: tuple[str, ...], python: str, seed: int
) -> dict[str, Any]:
    """Of a script: `settings` is what tells the arm from another, `python` is empty for the one that runs hotloop."""
    whole = Path(os.path.abspath(path))
    return {
        "kind": "script",
        "seed": seed,
        "settings": dict(settings),
        "script": str(whole),
        "arguments": list(arguments),
        "python": python,
        "roots": [str(whole.parent)],
    }


def _roots(settings: Mapping[str, Any]) -> list[str]:
    """Folders of files of the user's that the settings name: an env, a torso."""
    named = [settings["env"]["id"], settings["network"].get("torso", "")]
    return sorted({str(split_file(text)[0].parent) for text in named if is_file(text)})


def needs_trust(spec: Mapping[str, Any]) -> bool:
    """Whether doing it runs code of whoever wrote the list."""
    from hotloop.presets.env_names import needs_trust as runs_code

    if spec["kind"] == "script":
        return True
    return any(
        runs_code(text) for text in (spec["settings"]["env"]["id"], spec["settings"]["network"].get("torso", ""))
    )


def read_folder(root: Path) -> Files:
    """What is in a folder of the user's, to be sent elsewhere: plain files, without what is hidden, cached, installed
    or trained there."""
    found: Files = {}
    size = 0
    with explained("read", root):
        for folder, names, files in os.walk(root):
            here = Path(folder)
            names[:] = sorted(name for name in names if _is_shipped(here / name))
            for name in sorted(files):
                path = here / name
                if name.startswith(".") or not stat.S_ISREG(os.lstat(path).st_mode):
                    continue
                with opened(path) as (descriptor, length):
                    size += length
                    if len(found) >= MOST_FILES or size > MOST_BYTES:
                        raise SettingsError(
                            f"{root} holds more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB, too much to send",
                            "put the script or env into a folder of its own",
                        )
                    found[path.relative_to(root).as_posix()] = read_exactly(descriptor, length)
    return found


def _is_shipped(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _NOT_SHIPPED or folder.is_symlink():
        return False
    return not (folder / "pyvenv.cfg").exists() and not is_run(folder)


def digest_of(files: Files) -> str:
    """One name for a folder's content."""
    return hashlib.sha256(
        canonical_json({name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
    ).hexdigest()


def inner_path(name: Any) -> PurePosixPath:
    """A path that stays within the folder it is put into; ValueError for every other."""
    path = PurePosixPath(name) if isinstance(name, str) else None
    odd = path is None or path.is_absolute() or not path.parts or ".." in path.parts or "\\" in name or "\0" in name
    if odd or str(path) != name or len(name) > 500:
        raise ValueError(f"`{str(name)[:80]}` is no path within a folder")
    assert path is not None
    return path


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files into a new folder of ours."""
    with explained("write", folder):
        folder.mkdir(mode=0o700, parents=True)
        for name, data in files.items():
            path = folder / inner_path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
