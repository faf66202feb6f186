"""Which runs a comparison consists of, and what is left to do for each."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hotloop.compare.arms import Arm
from hotloop.compare.finished import Elsewhere, differing, of_learning, settings_of
from hotloop.core.errors import RunError
from hotloop.core.settings import flatten
from hotloop.runs.directory import Run, is_run
from hotloop.runs.plain import canonical_json

Status = Literal["waiting", "running", "finished", "failed"]
DEFAULT_ROOT = Path("runs")


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
    trees = [[arm.folder, of_learning(arm.settings), [str(path) for path in arm.runs]] for arm in arms]
    names = "-".join(arm.folder for arm in arms)[:60].strip("-.")
    return DEFAULT_ROOT / f"compare-{names}-{hashlib.sha256(canonical_json(trees)).hexdigest()[:8]}"


def plan_jobs(arms: Sequence[Arm], seeds: int, folder: Path, reuse: Path | None = None) -> list[Job]:
    """Seed by seed, so that what is there after a while is balanced over the arms. Finished runs under `reuse` are
    taken where they are."""
    elsewhere = Elsewhere(reuse)
    there = [_given(arm, path) for arm in arms for path in arm.runs]
    trained = [arm for arm in arms if not arm.runs]
    return there + [
        _plan(arm, seed, folder / arm.folder / f"seed-{seed}", elsewhere) for seed in range(seeds) for arm in trained
    ]


def _given(arm: Arm, path: Path) -> Job:
    run, seed = Run.open(path), settings_of(path)["seed"]
    if run.finished:
        return Job(arm, seed, path, (), status="finished", reused=True)
    return Job(
        arm, seed, path, (), status="failed", error=f"{path} is not finished; `hotloop resume {path}` continues it"
    )


def _plan(arm: Arm, seed: int, path: Path, elsewhere: Elsewhere) -> Job:
    found = None if is_run(path) else elsewhere.find(arm.settings, seed)
    return job_at(path, arm, seed) if found is None else Job(arm, seed, found, (), status="finished", reused=True)


def job_at(path: Path, arm: Arm, seed: int) -> Job:
    """Train at `path`, or continue or take the run that is there: RunError where it is not one of this arm and seed."""
    hotloop = (sys.executable, "-m", "hotloop")
    if not is_run(path):
        words = (arm.source, *arm.words, "--seed", str(seed), "--run-dir", str(path))
        return Job(arm, seed, path, (*hotloop, "train", *words, "--json", "--quiet"))
    run = Run.open(path)
    _require_same(run, arm, seed)
    if run.finished:
        return Job(arm, seed, path, (), status="finished", reused=True)
    # its env is the arm's, which was named or trusted in this very command, else the arm would not have been resolved
    return Job(arm, seed, path, (*hotloop, "resume", str(path), "--trust", "--json", "--quiet"))


def _require_same(run: Run, arm: Arm, seed: int) -> None:
    """A run that was there before counts only if it is what would be trained now."""
    found = settings_of(run.path)
    there, now = flatten(found), flatten(arm.settings) | {"seed": seed}
    names = differing(found, arm.settings) + (["seed"] if found["seed"] != seed else [])
    if names:
        other = [f"{name} {there.get(name)!r} there, {now.get(name)!r} now" for name in names]
        raise RunError(
            f"{run.path} was trained with other settings: {'; '.join(other[:3])}",
            "choose another folder for this search or comparison, or remove that run",
        )
