"""Runs on a Ray cluster: the same digests as here, whatever is killed. One cluster serves all quick tests."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import hotloop
from hotloop.comparison.arms import parse_arms
from hotloop.comparison.jobs import TrainingJob, plan_jobs, run_jobs
from hotloop.core.errors import HotloopError, RunError, SettingsError
from hotloop.core.program import install_command
from hotloop.scale import machines, ray_place
from hotloop.scale.cluster import Cluster, cluster
from hotloop.scale.local import LocalPlace
from hotloop.scale.places import require_place
from hotloop.scale.ray_place import RayPlace
from tests.scale.clusters import TINY, left_behind, pids_of


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    """In a process that has used Ray before, with another token."""
    importlib.import_module("ray")
    with cluster("ray", 2) as found:
        yield found
    assert left_behind() == []


@pytest.fixture(scope="module")
def place(shared: Cluster) -> RayPlace:
    return RayPlace(shared, 2, trust=False, mixed=False, say=SAID.append)


SAID: list[str] = []


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digests of two seeds, trained on this machine."""
    return digests(trained(tmp_path_factory.mktemp("here"), LocalPlace(2)))


def trained(
    folder: Path, place: Any, watch: Callable[[list[TrainingJob]], None] = lambda jobs: None
) -> list[TrainingJob]:
    jobs = plan_jobs(parse_arms(["a=cartpole-dqn"], TINY), 2, folder)
    run_jobs(jobs, place, lambda: watch(jobs))
    assert [job.error for job in jobs] == ["", ""]
    return jobs


def digests(jobs: list[TrainingJob]) -> dict[str, str]:
    return {job.name: json.loads((job.path / "result.json").read_text())["digest"] for job in jobs}


def test_runs_of_a_cluster_come_home_with_the_same_digests(
    place: RayPlace, here: dict[str, str], tmp_path: Path
) -> None:
    jobs = trained(tmp_path, place)
    assert digests(jobs) == here
    assert json.loads((jobs[0].path / "result.json").read_text())["run"] == str(jobs[0].path)
    assert {path.name for path in (jobs[0].path / "checkpoints").iterdir()} == {"000000000000400", "000000000000600"}
    assert {path.name for path in jobs[0].path.parent.iterdir()} == {"seed-0", "seed-1"}
    assert all(job.where for job in jobs)
    assert [json.loads((job.path / "run.json").read_text())["node"] for job in jobs] == [job.where for job in jobs]
    assert place.bytes["a, seed 0"] > 10_000
    assert hotloop.resume(jobs[0].path)["digest"] == here["a, seed 0"]


def test_a_killed_worker_and_a_killed_trainer_cost_nothing_but_time(
    shared: Cluster, place: RayPlace, here: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed: list[str] = []

    def kill(jobs: list[TrainingJob]) -> None:
        """The worker of one run, the trainer of the other, each once it has a checkpoint at home."""
        for job, what in zip(jobs, ("ray::train", "hotloop train"), strict=True):
            if what not in killed and job.status == "running" and list((job.path / "checkpoints").glob("0*")):
                for pid in pids_of(what)[:1]:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(what)

    assert digests(trained(tmp_path, place, kill)) == here
    assert killed
    assert shared.folder is not None
    deadline = time.monotonic() + 20
    while list(shared.folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert list(shared.folder.iterdir()) == [], "each run's janitor has removed what was left of it"
    assert capsys.readouterr().out == "", "what Ray says of it is not mixed into our data"


def test_a_stopped_worker_is_given_up_after_our_own_deadline(
    place: RayPlace, here: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_place, "DEADLINE_SECONDS", 4.0)
    SAID.clear()
    stopped: list[int] = []

    def stop(jobs: list[TrainingJob]) -> None:
        if not stopped and all(job.status == "running" for job in jobs) and pids_of("ray::train"):
            stopped.append(pids_of("ray::train")[0])
            os.kill(stopped[0], signal.SIGSTOP)

    assert digests(trained(tmp_path, place, stop)) == here
    assert any("no sign of life for 4 s" in text for text in SAID) or not stopped
    for pid in stopped:
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGCONT)


def test_an_interrupt_ends_everything_and_the_same_call_goes_on(
    place: RayPlace, here: dict[str, str], tmp_path: Path
) -> None:
    def interrupt(jobs: list[TrainingJob]) -> None:
        if any(list((job.path / "checkpoints").glob("0*")) for job in jobs):
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, place, interrupt)
    deadline = time.monotonic() + 20
    while pids_of("hotloop-node-") and time.monotonic() < deadline:
        time.sleep(0.2)
    assert pids_of("hotloop-node-") == []
    assert digests(trained(tmp_path, place)) == here


def test_own_code_is_sent_under_trust_only(place: RayPlace, tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "comparison" / "scripts" / "walk.py"
    jobs = plan_jobs(parse_arms([f"walk={shlex.quote(str(script))} --seed {{seed}}"], []), 1, tmp_path)
    with pytest.raises(SettingsError, match="--trust"):
        run_jobs(jobs, place, lambda: None)
    place._trust = True
    try:
        run_jobs(jobs, place, lambda: None)
    finally:
        place._trust = False
    assert (jobs[0].status, jobs[0].error) == ("finished", "")
    assert plan_jobs([jobs[0].arm], 1, tmp_path)[0].reused, "what came home is taken for what would be trained here"


def test_a_cluster_of_our_own_is_closed_to_others(shared: Cluster) -> None:
    assert shared.folder is not None
    home = shared.folder.parent
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "token").stat().st_mode) == 0o600
    outer = [
        (process.info["name"], one.laddr)
        for process in psutil.process_iter(["name", "cmdline"])
        if str(home) in " ".join(process.info["cmdline"] or [])
        for one in process.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr.ip not in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
    ]
    assert outer == []


def test_a_machine_that_rounds_in_another_way_is_refused_by_name_or_told(
    shared: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = machines.arithmetic() | {"vector unit": "NEON"}
    monkeypatch.setattr(machines, "arithmetic", lambda: other)
    with pytest.raises(RunError, match="cannot take part: vector unit .* instead of NEON"):
        RayPlace(shared, 2, trust=False, mixed=False, say=SAID.append)
    found = RayPlace(shared, 2, trust=False, mixed=True, say=SAID.append)
    ((name, differs),) = found.differing.items()
    assert "NEON" in differs[0]
    assert any(name in text for text in SAID)


@pytest.mark.parametrize("on", ["rey", "", "host", "host:port", "http://host:1", "host:123456"])
def test_a_place_that_is_none_is_told(on: str) -> None:
    with pytest.raises(SettingsError, match="`--on` is"):
        require_place(on)


def test_without_ray_it_is_told_what_to_install() -> None:
    program = "import sys; sys.modules['ray'] = None; from hotloop.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = ["compare", "cartpole-dqn", "--seeds", "1", "--on", "ray", "--out", "nowhere"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert "`--on ray` needs Ray, which is not installed" in done.stderr
    assert install_command("ray") in done.stderr


def test_a_token_that_others_can_read_or_that_is_missing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    for expected in ("no token", "others can read"):
        with pytest.raises(HotloopError, match=expected), cluster("127.0.0.1:1", 1):
            pass
        (tmp_path / "token").write_text("x")
        (tmp_path / "token").chmod(0o644)
