"""Processes that train nothing: who runs when, what a failure says, what Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hotloop.comparison.jobs import TrainingJob, run_jobs
from hotloop.core.program import ONE_THREAD
from hotloop.scale.local import LocalPlace
from tests.comparison.synthetic_runs import make_arm, write_run


def job(folder: Path, seed: int, program: str, *, leaves: bool = True) -> TrainingJob:
    """Which `leaves` a result, or not."""
    path = folder / f"seed-{seed}"
    if leaves:
        write_run(path, make_arm("a"), seed, [1.0])
    return TrainingJob(make_arm("a"), seed, path, (sys.executable, "-c", program))


def running(jobs: Sequence[TrainingJob]) -> int:
    return sum(job.status == "running" for job in jobs)


def test_never_more_at_once_than_workers_and_all_end(tmp_path: Path) -> None:
    jobs = [job(tmp_path, seed, "import time; time.sleep(0.2)") for seed in range(4)]
    most = []
    run_jobs(jobs, LocalPlace(2), lambda: most.append(running(jobs)))
    assert max(most) <= 2
    assert [job.status for job in jobs] == ["finished"] * 4
    assert list(tmp_path.glob("*.log")) == [], "a run without complaints leaves no log"


def test_an_exit_code_of_0_finishes_nothing(tmp_path: Path) -> None:
    none, begun = job(tmp_path, 0, "", leaves=False), job(tmp_path, 1, "")
    (begun.path / "result.json").unlink()
    without_digest = job(tmp_path, 2, "")
    result = json.loads((without_digest.path / "result.json").read_text())
    (without_digest.path / "result.json").write_text(json.dumps({**result, "digest": None}))
    jobs = [none, begun, without_digest]
    run_jobs(jobs, LocalPlace(1), lambda: None)
    assert [one.status for one in jobs] == ["failed"] * 3
    assert [one.error for one in jobs] == [
        "its process ended with exit code 0 and left no run",
        "its process ended with exit code 0 and left no result: something in it ended the program",
        "its result has no digest",
    ]


def test_a_failed_run_is_told_in_its_own_words_and_stops_nobody(tmp_path: Path) -> None:
    jobs = [
        job(
            tmp_path,
            0,
            "import sys; print('a note\\nerror: no such env\\n\\nhint: look', file=sys.stderr); sys.exit(2)",
        ),
        job(tmp_path, 1, "raise ValueError('deep inside')"),
        job(tmp_path, 2, "import os; os.kill(os.getpid(), 9)"),
        job(tmp_path, 3, ""),
    ]
    run_jobs(jobs, LocalPlace(1), lambda: None)
    assert [job.status for job in jobs] == ["failed", "failed", "failed", "finished"]
    assert jobs[0].error == "no such env\n\nhint: look"
    assert jobs[1].error == f"ValueError: deep inside (all of it in {tmp_path / 'seed-1.log'})"
    assert jobs[2].error == "ended by signal SIGKILL without a word"
    assert "Traceback" in (tmp_path / "seed-1.log").read_text()


def test_finished_jobs_are_left_alone(tmp_path: Path) -> None:
    done = TrainingJob(make_arm("a"), 0, tmp_path / "seed-0", (), status="finished", reused=True)
    run_jobs([done], LocalPlace(2), lambda: None)
    assert done.status == "finished"


def test_children_compute_on_one_thread_each(tmp_path: Path) -> None:
    program = f"import os, sys; sys.exit(any(os.environ[name] != '1' for name in {ONE_THREAD!r}))"
    (one,) = jobs = [job(tmp_path, 0, program)]
    run_jobs(jobs, LocalPlace(1), lambda: None)
    assert one.status == "finished"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_children_politely(number: signal.Signals, tmp_path: Path) -> None:
    ready, saved = tmp_path / "ready", tmp_path / "saved"
    program = (
        "import pathlib, signal, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({str(saved)!r}).touch(), exit(143)))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(60)\n"
    )
    jobs = [job(tmp_path / "runs", 0, program), job(tmp_path / "runs", 1, "")]

    def watch() -> None:
        if ready.exists():
            os.kill(os.getpid(), number)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, LocalPlace(1), watch)
    assert saved.exists()
    assert jobs[1].status == "waiting"
    assert signal.getsignal(signal.SIGTERM) == before
