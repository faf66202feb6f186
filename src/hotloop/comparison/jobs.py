"""The runs of a comparison: which there are, what is left to do for each, and handing those that are not finished to a
place that trains them."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from hotloop.comparison.arms import Arm
from hotloop.comparison.finished import RunCache
from hotloop.comparison.scripts import prepare_script, script_command, script_finished
from hotloop.core.children import HOTLOOP, own_child
from hotloop.core.errors import SettingsError
from hotloop.core.places import Began, Done, Place, Task
from hotloop.core.program import ONE_THREAD
from hotloop.core.settings import build
from hotloop.presets.registry import class_of, label_of
from hotloop.runs.directory import Run, is_run
from hotloop.runs.files import canonical_json
from hotloop.scale.specs import learning_settings, require_same, run_spec, script_spec, tree_of
from hotloop.scale.work import (
    is_script_run,
    missing_of_run,
    missing_of_script,
    script_run_ended_well,
    script_run_of,
)

Status = Literal["waiting", "running", "finished", "failed"]
DEFAULT_ROOT = Path("runs")


@dataclass
class TrainingJob:
    """One run: an arm with a seed."""

    arm: Arm
    seed: int
    path: Path
    command: tuple[str, ...]
    status: Status = "waiting"
    reused: bool = False
    error: str = ""
    where: str = ""  # the machine that it runs or ran on; empty: this one

    @property
    def name(self) -> str:
        return f"{self.arm.label}, seed {self.seed}"

    def spec(self) -> dict[str, Any]:
        """What it is, as plain data: any machine can do it."""
        arm, script = self.arm, self.arm.script
        if script is None:
            settings = build(class_of(arm.settings), dict(arm.settings))
            return run_spec(label_of(settings, arm.source), arm.settings, self.seed)
        if arm.scores is not None:
            raise SettingsError(
                f"{arm.label} writes its scores to {arm.scores.path} of whichever machine it runs on",
                "leave `--scores` out: the recorder sees the episodes; or train it here",
            )
        python = "" if script.python == sys.executable else script.python
        return script_spec(script.settings(), script.path, script.with_seed(self.seed), python, self.seed)

    def task(self, index: int, elsewhere: bool) -> Task:
        """What a place is given; on this machine a script is told where to leave what it does."""
        if elsewhere:
            return Task(index, self.name, self.path, spec=self.spec())
        if self.arm.script is None:
            proof, threads = partial(missing_of_run, self.path), dict.fromkeys(ONE_THREAD, "1")
            return Task(index, self.name, self.path, self.command, environment=threads, proof=proof)
        prepare_script(self.arm.script, self.seed, self.path)
        proof = partial(missing_of_script, self.arm.script.settings(), self.seed, self.path)
        return Task(index, self.name, self.path, self.command, keeps_output=True, proof=proof)


def default_folder(arms: Sequence[Arm]) -> Path:
    """The same for the same arms and settings, so that the same command continues what was stopped."""
    trees = [[arm.folder, learning_settings(arm.settings), [str(path) for path in arm.runs]] for arm in arms]
    names = "-".join(arm.folder for arm in arms)[:60].strip("-.")
    return DEFAULT_ROOT / f"compare-{names}-{hashlib.sha256(canonical_json(trees)).hexdigest()[:8]}"


def most_at_once(cores: int, *settings: Mapping[str, Any]) -> int:
    """Runs of these settings that the cores have room for."""
    return int(max(1, cores // max(tree["torch_threads"] for tree in settings)))


def plan_jobs(arms: Sequence[Arm], seeds: int, folder: Path, reuse: Path | None = None) -> list[TrainingJob]:
    """Seed by seed, so that what is there after a while is balanced over the arms. Finished runs under `reuse` are
    taken where they are."""
    elsewhere = RunCache(reuse)
    there = [job for arm in arms for job in _there(arm)]
    trained = [arm for arm in arms if not arm.runs]
    return there + [
        _plan(arm, seed, folder / arm.folder / f"seed-{seed}", elsewhere) for seed in range(seeds) for arm in trained
    ]


def _there(arm: Arm) -> list[TrainingJob]:
    """Runs that were named as finished ones, or files of somebody else's."""
    if arm.seeds:
        files = zip(arm.seeds, arm.runs, strict=True)
        return [TrainingJob(arm, seed, path, (), status="finished", reused=True) for seed, path in files]
    return [_given(arm, path) for path in arm.runs]


def _given(arm: Arm, path: Path) -> TrainingJob:
    if is_script_run(path):
        seed, ended_well = script_run_of(path)["seed"], script_run_ended_well(path)
        error = "" if ended_well else f"{path} is not finished; the command that made it makes it anew"
        return TrainingJob(arm, seed, path, (), "finished" if ended_well else "failed", ended_well, error)
    run, seed = Run.open(path), tree_of(path)["seed"]
    if run.finished:
        return TrainingJob(arm, seed, path, (), status="finished", reused=True)
    return TrainingJob(
        arm, seed, path, (), status="failed", error=f"{path} is not finished; `hotloop resume {path}` continues it"
    )


def _plan(arm: Arm, seed: int, path: Path, elsewhere: RunCache) -> TrainingJob:
    if arm.script is not None:
        if script_finished(arm.script, seed, path):
            return TrainingJob(arm, seed, path, (), status="finished", reused=True)
        return TrainingJob(arm, seed, path, script_command(arm.script, seed, path))
    found = None if is_run(path) else elsewhere.find(arm.settings, seed)
    return (
        job_at(path, arm, seed) if found is None else TrainingJob(arm, seed, found, (), status="finished", reused=True)
    )


def job_at(path: Path, arm: Arm, seed: int) -> TrainingJob:
    """Train at `path`, or continue or take the run that is there: RunError where it is not one of this arm and seed."""
    if not is_run(path):
        words = (arm.source, *arm.words, "--seed", str(seed), "--run-dir", str(path))
        return TrainingJob(arm, seed, path, own_child(HOTLOOP, "train", *words, "--json", "--quiet"))
    run = Run.open(path)
    require_same(run, arm.settings, seed)
    if run.finished:
        return TrainingJob(arm, seed, path, (), status="finished", reused=True)
    # its env is the arm's, which was named or trusted in this very command, else the arm would not have been resolved
    return TrainingJob(arm, seed, path, own_child(HOTLOOP, "resume", str(path), "--trust", "--json", "--quiet"))


Watch = Callable[[], None]


def run_jobs(jobs: Sequence[TrainingJob], place: Place, watch: Watch) -> None:
    """Run all that wait; `watch` is called ten times a second. Jobs carry their status, error and machine afterwards.

    Ctrl-C or SIGTERM ends those that run, which save a checkpoint first, and comes out as KeyboardInterrupt.
    """
    waiting = [(index, job) for index, job in enumerate(jobs) if job.status == "waiting"]
    tasks = [job.task(index, place.elsewhere) for index, job in waiting]
    with contextlib.closing(place.run(tasks)) as news:
        for one in news:
            match one:
                case Began(index, where):
                    jobs[index].status, jobs[index].where = "running", where
                case Done(index, error):
                    jobs[index].status, jobs[index].error = "failed" if error else "finished", error
            watch()
