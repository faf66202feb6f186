"""The runs of a comparison: which there are, what is left to do for each, and training those that are not finished in
processes of their own, several at once; one that fails does not stop the others."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hotloop.comparison.arms import Arm
from hotloop.comparison.finished import RunCache, differing, learning_settings, tree_of
from hotloop.comparison.scripts import prepare_script, script_command, script_finished
from hotloop.core.errors import RunError
from hotloop.core.interrupts import terminate_as_interrupt
from hotloop.core.keeper import Keeper
from hotloop.core.program import ONE_THREAD
from hotloop.core.settings import flatten
from hotloop.runs.directory import Run, is_run
from hotloop.runs.files import canonical_json, explained, make_folder

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
    trees = [[arm.folder, learning_settings(arm.settings), [str(path) for path in arm.runs]] for arm in arms]
    names = "-".join(arm.folder for arm in arms)[:60].strip("-.")
    return DEFAULT_ROOT / f"compare-{names}-{hashlib.sha256(canonical_json(trees)).hexdigest()[:8]}"


def most_at_once(cores: int, *settings: Mapping[str, Any]) -> int:
    """Runs of these settings that the cores have room for."""
    return max(1, cores // max(tree["threads"] for tree in settings))


def plan_jobs(arms: Sequence[Arm], seeds: int, folder: Path, reuse: Path | None = None) -> list[Job]:
    """Seed by seed, so that what is there after a while is balanced over the arms. Finished runs under `reuse` are
    taken where they are."""
    elsewhere = RunCache(reuse)
    there = [job for arm in arms for job in _there(arm)]
    trained = [arm for arm in arms if not arm.runs]
    return there + [
        _plan(arm, seed, folder / arm.folder / f"seed-{seed}", elsewhere) for seed in range(seeds) for arm in trained
    ]


def _there(arm: Arm) -> list[Job]:
    """Runs that were named as finished ones, or files of somebody else's."""
    if arm.seeds:
        files = zip(arm.seeds, arm.runs, strict=True)
        return [Job(arm, seed, path, (), status="finished", reused=True) for seed, path in files]
    return [_given(arm, path) for path in arm.runs]


def _given(arm: Arm, path: Path) -> Job:
    run, seed = Run.open(path), tree_of(path)["seed"]
    if run.finished:
        return Job(arm, seed, path, (), status="finished", reused=True)
    return Job(
        arm, seed, path, (), status="failed", error=f"{path} is not finished; `hotloop resume {path}` continues it"
    )


def _plan(arm: Arm, seed: int, path: Path, elsewhere: RunCache) -> Job:
    if arm.script is not None:
        if script_finished(arm.script, seed, path):
            return Job(arm, seed, path, (), status="finished", reused=True)
        return Job(arm, seed, path, script_command(arm.script, seed, path))
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
    found = tree_of(run.path)
    there, now = flatten(found), flatten(arm.settings) | {"seed": seed}
    names = differing(found, arm.settings) + (["seed"] if found["seed"] != seed else [])
    if names:
        other = [f"{name} {there.get(name)!r} there, {now.get(name)!r} now" for name in names]
        raise RunError(
            f"{run.path} was trained with other settings: {'; '.join(other[:3])}",
            "choose another folder for this search or comparison, or remove that run",
        )


_POLL_SECONDS, _PATIENCE_SECONDS = 0.1, 40.0
_ERROR_LENGTH = 2_000
Watch = Callable[[], None]


def run_jobs(jobs: Sequence[Job], workers: int, watch: Watch) -> None:
    """Run all that wait; `watch` is called ten times a second. Jobs carry their status and error afterwards.

    Ctrl-C or SIGTERM ends the children, which save a checkpoint first, and comes out as KeyboardInterrupt. They are
    ended in the same way should this process be killed.
    """
    waiting = [job for job in jobs if job.status == "waiting"]
    running: dict[subprocess.Popen[bytes], Job] = {}
    if not waiting:
        return
    with terminate_as_interrupt(), Keeper() as keeper:
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    job = waiting.pop(0)
                    process = _start(job)
                    running[process] = job
                    keeper.watch(process.pid, signal.SIGTERM)
                time.sleep(_POLL_SECONDS)
                for process in [process for process in running if process.poll() is not None]:
                    keeper.forget(process.pid)
                    _finish(running.pop(process), process.returncode)
                watch()
        finally:
            _end(list(running))
            for process in running:
                keeper.forget(process.pid)


def _start(job: Job) -> subprocess.Popen[bytes]:
    """A group of its own: Ctrl-C reaches the child once, through us, and not as the second one that stops at once."""
    make_folder(job.log.parent)
    script = job.arm.script
    if script is not None:
        prepare_script(script, job.seed, job.path)
    with explained("write", job.log), open(job.log, "wb", opener=_in_place) as log:
        process = subprocess.Popen(
            job.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if script is None else log,
            stderr=log,
            env=os.environ | dict.fromkeys(ONE_THREAD, "1") if script is None else None,  # a script's are its own
            process_group=0,
        )
    job.status = "running"
    return process


def _in_place(path: str, flags: int) -> int:
    """A log that is a symbolic link would be written to wherever it leads."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _finish(job: Job, code: int) -> None:
    said = _read(job.log)
    if code == 0:
        job.status = "finished"
    else:
        job.status, job.error = "failed", _reason(said, code, job.log)
    if not said:
        with contextlib.suppress(OSError):
            job.log.unlink()


def _reason(said: str, code: int, log: Path) -> str:
    """A user's mistake is told in full; of a traceback the last line says what it was, the log has the rest."""
    if not said:
        ending = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"ended by {ending} without a word"
    if "Traceback (most recent call last)" in said:
        return f"{said.splitlines()[-1]} (all of it in {log})"
    said = said[said.find("error: ") + len("error: ") :] if "error: " in said else said
    return said if len(said) <= _ERROR_LENGTH else "..." + said[-_ERROR_LENGTH:]


def _read(log: Path) -> str:
    try:
        return log.read_text(errors="replace").strip()
    except OSError:
        return ""


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """SIGTERM, up to 40 s for a checkpoint, then SIGKILL; at once on a second Ctrl-C."""
    try:
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
