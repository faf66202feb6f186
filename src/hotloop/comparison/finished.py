"""Runs that are there already: named as an arm, or lying where one of the same settings and seed would be trained."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import HotloopError, RunError
from hotloop.core.program import hotloop_version
from hotloop.presets.named import preset_names
from hotloop.runs.directory import ABOUT, Run, is_run
from hotloop.runs.files import read_json_table
from hotloop.scale.specs import differing, tree_of
from hotloop.scale.work import is_script_run, script_run_of


@dataclass(frozen=True)
class FoundRuns:
    name: str
    paths: tuple[Path, ...]
    settings: Mapping[str, Any]


def find_runs(words: Sequence[str]) -> list[FoundRuns]:
    """The arms in one or more folders: runs, a folder of runs, or a folder of such folders, which is an arm each."""
    paths = [Path(word) for word in words]
    for path in paths:
        if not path.is_dir():
            raise RunError(f"{path} is no folder", "an arm of finished runs is made of folders only, without settings")
    direct = [run for path in paths for run in ([path] if _is_any_run(path) else _runs_in(path))]
    if direct:
        return [_found(paths[0].resolve().name, direct)]
    deeper = [(folder.name, runs) for path in paths for folder in _arm_folders(path) if (runs := _runs_in(folder))]
    if not deeper:
        raise RunError(
            f"{paths[0]} holds no run", "give a run, or a folder of runs; `hotloop runs` lists those there are"
        )
    return [_found(name, runs) for name, runs in deeper]


def holds_runs(word: str) -> bool:
    """Whether a word names a run or a folder of runs. A preset's name never does: `./name` is the folder."""
    path = Path(word)
    if not word or word in preset_names() or not path.is_dir():
        return False
    return _is_any_run(path) or bool(_runs_in(path)) or any(_runs_in(folder) for folder in _folders(path))


def _is_any_run(path: Path) -> bool:
    """One of ours, or one that a command left."""
    return is_run(path) or is_script_run(path)


def settings_at(path: Path) -> dict[str, Any]:
    """Of a run of ours all settings; of a command's the script, its text and its arguments; the seed in both."""
    return script_run_of(path) if is_script_run(path) else tree_of(path)


def _found(name: str, paths: Sequence[Path]) -> FoundRuns:
    """They must be one arm: equal but for the seed."""
    by_seed: dict[Any, Path] = {}
    first = settings_at(paths[0])
    for path in paths:
        settings = settings_at(path)
        names = differing(settings, first)
        if names:
            raise RunError(
                f"{paths[0]} and {path} differ in {', '.join(names[:3])}, so that they are not seeds of one arm",
                "name the runs of each arm: `one=RUN RUN ...` in quotes",
            )
        seed = settings["seed"]
        if seed in by_seed:
            raise RunError(f"{by_seed[seed]} and {path} have the same seed, {seed}", "leave one of them out")
        by_seed[seed] = path
    ordered = sorted(by_seed)
    return FoundRuns(name, tuple(by_seed[seed] for seed in ordered), first)


class RunCache:
    """Finished runs of this version under `root`, two folders deep at most; read when first asked for."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._found: list[tuple[Path, dict[str, Any]]] | None = None

    def find(self, settings: Mapping[str, Any], seed: int) -> Path | None:
        if self._found is None:
            self._found = list(self._look())
        for path, there in self._found:
            if there["seed"] == seed and not differing(there, settings):
                return path
        return None

    def _look(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        if self._root is None or not self._root.is_dir():
            return
        near = _folders(self._root)
        for path in [*near, *[deep for folder in near for arm in _folders(folder) for deep in [arm, *_folders(arm)]]]:
            if is_run(path):
                with suppress(HotloopError):  # a damaged one is no use, and no reason to stop
                    run = Run.open(path)
                    if run.finished and run.read_json(ABOUT).get("hotloop") == hotloop_version():
                        yield path, tree_of(path)


def _folders(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if entry.is_dir()) if not _is_any_run(path) else []


def _arm_folders(path: Path) -> list[Path]:
    """As the comparison that made them had them, else by name."""
    labels: list[str] = []
    with suppress(HotloopError, KeyError, TypeError):
        labels = [folder_name(arm["label"]) for arm in read_json_table(path / "compare.json")["arms"]]
    order = {name: place for place, name in enumerate(labels)}
    return sorted(_folders(path), key=lambda folder: (order.get(folder.name, len(order)), folder.name))


def folder_name(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-.")


def _runs_in(path: Path) -> list[Path]:
    return [entry for entry in _folders(path) if _is_any_run(entry)]
