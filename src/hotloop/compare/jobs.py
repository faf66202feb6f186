"""Which runs a comparison consists of, and what is left to do for each."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hotloop.algos.registry import class_of
from hotloop.compare.arms import Arm
from hotloop.core.errors import RunError
from hotloop.core.settings import as_tree, build, flatten
from hotloop.runs.directory import Run, is_run
from hotloop.runs.plain import canonical_json

Status = Literal["waiting", "running", "finished", "failed"]
NOT_LEARNING = ("run_dir", "trust", "seed")
"""Settings in which two runs of an arm may differ (the seed is checked by itself)."""


@dataclass
class Job:
    """One run: an arm with a seed."""

    arm: Arm
    seed: int
    path: Path
    command: tuple[str, ...]
    status: Status = "waiting"
    reused: bool = False
    error: str = ""

    @property
    def name(self) -> str:
        return f"{self.arm.label}, seed {self.seed}"

    @property
    def log(self) -> Path:
        return self.path.with_suffix(".log")


def default_folder(arms: Sequence[Arm]) -> Path:
    """The same for the same arms and settings, so that the same command continues what was stopped."""
    trees = [[arm.folder, _of_learning(arm.settings)] for arm in arms]
    names = "-".join(arm.folder for arm in arms)[:60].strip("-.")
    return Path("runs") / f"compare-{names}-{hashlib.sha256(canonical_json(trees)).hexdigest()[:8]}"


def plan_jobs(arms: Sequence[Arm], seeds: int, folder: Path) -> list[Job]:
    """Seed by seed, so that what is there after a while is balanced over the arms."""
    return [_plan(arm, seed, folder / arm.folder / f"seed-{seed}") for seed in range(seeds) for arm in arms]


def _plan(arm: Arm, seed: int, path: Path) -> Job:
    hotloop = (sys.executable, "-m", "hotloop")
    if not is_run(path):
        words = (arm.source, *arm.words, "--seed", str(seed), "--run-dir", str(path))
        return Job(arm, seed, path, (*hotloop, "train", *words, "--json", "--quiet"))
    run = Run.open(path)
    _require_same(run, arm, seed)
    if run.finished:
        return Job(arm, seed, path, (), status="finished", reused=True)
    # the env was named or trusted in this very command, else the arm would not have been resolved
    return Job(arm, seed, path, (*hotloop, "resume", str(path), "--trust", "--json", "--quiet"))


def _require_same(run: Run, arm: Arm, seed: int) -> None:
    """A run that was there before counts only if it is what would be trained now."""
    found = run.settings()
    there = flatten(as_tree(build(class_of(found), found, source=str(run.path / "settings.toml"))))
    now = flatten(arm.settings) | {"seed": seed}
    names = sorted((there.keys() | now.keys()) - {"run_dir", "trust"})
    other = [f"{name} {there.get(name)!r} there, {now.get(name)!r} now" for name in names if differ(there, now, name)]
    if other:
        raise RunError(
            f"{run.path} was trained with other settings: {'; '.join(other[:3])}",
            "choose another `--out`, another label, or remove that folder",
        )


def differ(there: Mapping[str, Any], now: Mapping[str, Any], name: str) -> bool:
    return name not in there or name not in now or there[name] != now[name]


def _of_learning(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in NOT_LEARNING}
