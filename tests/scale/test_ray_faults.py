"""Faults at random moments on clusters of several nodes: all runs finish with the digests of this machine, and nothing
is left behind. What cannot be tried here (no root, no `ip netns`) is skipped with the reason."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hotloop.comparison.arms import parse_arms
from hotloop.comparison.jobs import TrainingJob, plan_jobs, run_jobs
from hotloop.scale.cluster import STORE_BYTES, Cluster
from hotloop.scale.local import LocalPlace
from hotloop.scale.ray_place import RayPlace
from tests.scale.clusters import left_behind, pids_of, several_nodes

pytestmark = pytest.mark.slow
SEEDS = 4
KILLS = 20
LONGER = [
    *("--total-env-steps", "4000", "--learning-starts", "100", "--batch-size", "32", "--network.hidden", "64"),
    *("--evaluation.every", "500", "--evaluation.episodes", "5", "--evaluation.final-episodes", "5"),
    *("--checkpoint.every", "400", "--updates-per-env-step", "1"),
]


def planned(folder: Path, words: list[str] = LONGER) -> list[TrainingJob]:
    return plan_jobs(parse_arms(["a=cartpole-dqn"], words), SEEDS, folder)


def digests(jobs: list[TrainingJob]) -> dict[str, str]:
    assert [job.error for job in jobs] == [""] * len(jobs)
    return {job.name: json.loads((job.path / "result.json").read_text())["digest"] for job in jobs}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    jobs = planned(tmp_path_factory.mktemp("here"))
    run_jobs(jobs, LocalPlace(2), lambda: None)
    return digests(jobs)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    give_up = time.monotonic() + 30
    while left_behind() and time.monotonic() < give_up:
        time.sleep(0.5)
    assert left_behind() == []


class NowAndThen:
    """Does something after random pauses, so often, while runs are under way. On a slow core a new node takes longer to
    come than the pause: the next deed waits for a checkpoint then, or runs would be lost for ever."""

    def __init__(self, deed: Callable[[], bool], pause: float, folder: Path) -> None:
        self._deed, self._pause, self._folder, self.count = deed, pause, folder, 0
        self._random = random.Random(1)
        self._next = time.monotonic() + pause
        self._seen: set[Path] = set()

    def watch(self) -> None:
        if time.monotonic() < self._next or self.count >= KILLS:
            return
        saved = set(self._folder.glob("*/a/seed-*/checkpoints/0*"))
        if not self.count or saved - self._seen:
            self._next = time.monotonic() + self._random.uniform(0.2, 2.0) * self._pause
            self._seen |= saved
            self.count += self._deed()


def until_enough(folder: Path, place: Any, deed: Callable[[], bool], pause: float, here: dict[str, str]) -> int:
    """Runs again and again, until so many faults have been made."""
    faults = NowAndThen(deed, pause, folder)
    number = 0
    while faults.count < KILLS:
        jobs = planned(folder / str(number))
        run_jobs(jobs, place, faults.watch)
        assert digests(jobs) == here
        number += 1
    return faults.count


def test_node_kills(here: dict[str, str], tmp_path: Path) -> None:
    with several_nodes(3) as (made, found):
        place = RayPlace(found, 3, trust=False, mixed=False, say=print)

        def kill() -> bool:
            node = random.choice(list(made.worker_nodes))
            made.remove_node(node, allow_graceful=False)
            made.add_node(num_cpus=1, wait=False, object_store_memory=128 * 2**20, num_gpus=0)
            return True

        print("node kills:", until_enough(tmp_path, place, kill, 6.0, here))


def test_worker_and_trainer_kills(here: dict[str, str], tmp_path: Path) -> None:
    with several_nodes(2) as (_, found):
        place = RayPlace(found, 2, trust=False, mixed=False, say=print)

        def kill() -> bool:
            pids = pids_of(random.choice(["ray::train", "hotloop-node-"]))
            if pids:
                os.kill(random.choice(pids), signal.SIGKILL)
            return bool(pids)

        print("worker kills:", until_enough(tmp_path, place, kill, 5.0, here))


def test_a_stopped_worker(here: dict[str, str], tmp_path: Path) -> None:
    stopped: list[int] = []

    def stop() -> None:
        if not stopped and len(pids_of("ray::train")) == 2:
            stopped.append(pids_of("ray::train")[0])
            os.kill(stopped[0], signal.SIGSTOP)

    with several_nodes(2) as (_, found):
        jobs = planned(tmp_path)
        run_jobs(jobs, RayPlace(found, 2, trust=False, mixed=False, say=print), stop)
        assert digests(jobs) == here
    assert stopped


@pytest.mark.parametrize("nodes", [1, 3])
def test_any_number_of_nodes(nodes: int, here: dict[str, str], tmp_path: Path) -> None:
    with several_nodes(nodes) as (_, found):
        jobs = planned(tmp_path)
        run_jobs(jobs, RayPlace(found, nodes, trust=False, mixed=False, say=print), lambda: None)
        assert digests(jobs) == here
        assert len({job.where for job in jobs}) == nodes


def test_the_driver_is_killed_and_the_same_command_goes_on(here: dict[str, str], tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hotloop", "compare", "a=cartpole-dqn", "--seeds", str(SEEDS), "--on", "ray"]
    words += ["--workers", "2", "--out", str(tmp_path / "out"), "--quiet", "--", *LONGER]
    for _ in range(3):
        driver = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        give_up = time.monotonic() + 120
        before = set(tmp_path.glob("out/a/seed-*/checkpoints/0*"))
        while set(tmp_path.glob("out/a/seed-*/checkpoints/0*")) <= before:  # each gets a little further
            assert time.monotonic() < give_up
            time.sleep(0.2)
        driver.kill()
        driver.wait()
        while left_behind() and time.monotonic() < give_up + 60:
            time.sleep(0.5)
        assert left_behind() == []
    assert subprocess.run(words, stdout=subprocess.DEVNULL, timeout=600).returncode == 0
    assert digests(planned(tmp_path / "out")) == here


def test_an_object_store_too_small_for_what_crosses(tmp_path: Path) -> None:
    """A checkpoint of some 130 MB through stores of 80 MB, and all of it at once where the run is taken up again."""
    store = 80 * 2**20
    large = [
        *("--total-env-steps", "600", "--learning-starts", "100", "--batch-size", "8", "--network.hidden", "2600"),
        *("2600", "--updates-per-env-step", "0.05", "--evaluation.final-episodes", "2", "--checkpoint.every", "200"),
    ]
    one = plan_jobs(parse_arms(["a=cartpole-dqn"], large), 1, tmp_path / "here")
    run_jobs(one, LocalPlace(1), lambda: None)
    said: list[str] = []

    def kill() -> None:
        if not said and list(tmp_path.glob("there/a/seed-0/checkpoints/0*")):
            for pid in pids_of("ray::train"):
                os.kill(pid, signal.SIGKILL)

    with several_nodes(2, store=store) as (_, found):
        jobs = plan_jobs(parse_arms(["a=cartpole-dqn"], large), 1, tmp_path / "there")
        run_jobs(jobs, RayPlace(found, 2, trust=False, mixed=False, say=said.append), kill)
        assert digests(jobs) == digests(one)
    for path in tmp_path.glob("there/a/seed-0/checkpoints/0*"):
        assert sum(file.stat().st_size for file in path.iterdir()) > store
    assert len(said) == 1, "it was lost once"


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a small tmpfs, network namespaces")


@needs_root
def test_a_node_whose_disk_is_full(here: dict[str, str], tmp_path: Path) -> None:
    """Two nodes, one of which works on a disk of 200 kB."""
    small, told = tmp_path / "small", list[str]()
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(small)]).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        with several_nodes(1) as (made, found):
            made.add_node(num_cpus=1, object_store_memory=STORE_BYTES, num_gpus=0, env_vars={"TMPDIR": str(small)})
            jobs = planned(tmp_path / "runs")
            run_jobs(
                jobs, RayPlace(Cluster(found.ray, None), 2, trust=False, mixed=False, say=told.append), lambda: None
            )
            print(*told, sep="\n")
            assert digests(jobs) == here
            (verdict,) = [text for text in told if "gets no further runs" in text]
            assert "No space left on device" in verdict
            assert verdict.split()[0] not in {job.where for job in jobs}
        assert list(small.glob("hotloop-*")) == []
    finally:
        subprocess.run(["umount", "-l", str(small)])


@needs_root
@pytest.mark.skipif(shutil.which("ip") is None, reason="needs `ip netns`")
def test_a_partition_between_two_machines(here: dict[str, str], tmp_path: Path) -> None:
    """Two network namespaces as two machines; the link goes down while both train, and the second never comes back."""
    script = Path(__file__).with_name("two_machines.sh")
    done = subprocess.run(
        ["bash", str(script), str(tmp_path), sys.executable, str(SEEDS), *LONGER],
        capture_output=True,
        text=True,
        timeout=900,
    )
    print(done.stdout, done.stderr)
    if done.returncode == 77:
        pytest.skip("network namespaces cannot be made here")
    assert done.returncode == 0
    assert "was lost" in done.stderr
    assert "a folder stayed" not in done.stdout
    assert digests(planned(tmp_path / "out")) == here
