"""Workers that die, hang or outlive their owner: named, replaced, and nothing left of them."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from hotloop.core.errors import EnvError
from hotloop.core.rng import derive_seed
from hotloop.envs.registry import make_envs
from hotloop.envs.workers import supervisor
from hotloop.presets.env_settings import EnvSettings
from tests.envs import planted_worker_envs

FILE = Path(planted_worker_envs.__file__)
SEEDS = np.array([5, 6, 7, 8], np.uint64)
ACTIONS = np.ones(4, np.int64)


def make(name: str, workers: int = 2, **settings: Any) -> Any:
    return make_envs(EnvSettings(id=f"{FILE}:{name}", num_envs=4, workers=workers, **settings), 4, SEEDS)


def kill(pid: int, number: int) -> None:
    os.kill(pid, number)
    if number != signal.SIGSTOP:
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.001)


def left_behind() -> tuple[int, int, list[str]]:
    """Open files, child processes and names in shared memory."""
    gc.collect()  # an error that was caught holds the frames it came through, and what those hold
    own = psutil.Process()
    shared = sorted(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else []
    return own.num_fds(), len(own.children(recursive=True)), [name for name in shared if "hotloop" in name]


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Any:
    before = left_behind()
    yield
    assert left_behind() == before


def first_seeds(restarts: int) -> list[int]:
    """What `Steady` shows of the seeds of all four envs after so many restarts of their workers."""
    numbers = [derive_seed(int(seed), "restart", restarts) if restarts else int(seed) for seed in SEEDS]
    return [number % 2**31 % 1000 for number in numbers]


def test_a_killed_worker_is_named_and_its_episodes_end_with_what_was_seen_last(capfd):
    envs = make("Steady")
    envs.reset()
    envs.step(ACTIONS)
    before = envs.step(ACTIONS)
    kill(envs.worker_pids[1], signal.SIGKILL)
    step = envs.step(ACTIONS)
    assert step.truncated.tolist() == [False, False, True, True]
    assert not step.terminated.any()
    assert step.reward.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert np.array_equal(step.final_obs[2:], before.obs[2:])
    assert step.final_obs[:, 0].tolist() == [3, 3, 2, 2]
    assert step.obs[:, 0].tolist() == [3, 3, 0, 0]  # the next episode begins at once
    assert step.obs[:, 2].tolist() == first_seeds(0)[:2] + first_seeds(1)[2:]
    after = envs.step(ACTIONS)
    assert after.obs[:, 0].tolist() == [4, 4, 1, 1]
    assert after.obs is after.final_obs
    envs.close()
    said = capfd.readouterr().err
    assert f"`{FILE}:Steady`: the worker process of envs 2-3 was killed by signal 9 (SIGKILL), after 2 steps" in said
    assert "restart 1 of 10" in said
    assert [(incident.first, incident.last) for incident in envs.incidents] == [(2, 3)]


def test_an_episode_that_had_just_begun_ends_with_its_first_observation():
    envs = make("Steady", options={"length": 2})
    envs.reset()
    envs.step(ACTIONS)
    before = envs.step(ACTIONS)
    assert before.terminated.all()
    kill(envs.worker_pids[0], signal.SIGKILL)
    step = envs.step(ACTIONS)
    assert np.array_equal(step.final_obs[:2], before.obs[:2])
    assert step.final_obs[:, 0].tolist() == [0, 0, 1, 1]
    envs.close()


def test_a_crash_inside_a_step_is_told_with_its_stack_and_does_not_come_again():
    envs = make("Crashes", options={"bad_seed": 8})
    envs.reset()
    steps = [envs.step(ACTIONS) for _ in range(6)]
    assert [step.truncated.tolist() for step in steps] == [[False, False, at == 2, at == 2] for at in range(6)]
    (incident,) = envs.incidents
    assert "signal 11 (SIGSEGV)" in incident.reason
    assert "in trouble" in incident.stack
    assert FILE.name in incident.stack
    envs.close()


def test_without_restarts_left_the_run_stops():
    envs = make("Leaves", worker_restarts=1, options={"bad_seed": -1})
    envs.reset()
    envs.step(ACTIONS)
    envs.step(ACTIONS)
    with pytest.raises(EnvError, match=r"envs 2-3 left with exit code 7, after 2 .* all 1 restarts .* are used up"):
        envs.step(ACTIONS)
    with pytest.raises(EnvError, match="left in the middle of a step"):
        envs.step(ACTIONS)
    envs.close()


def test_envs_that_crash_while_they_are_made_are_refused():
    with pytest.raises(EnvError, match=r"envs 0-1 was killed by signal 11 \(SIGSEGV\), before the first step"):
        make("CrashesMade")


def test_a_worker_that_dies_before_a_reset_is_replaced():
    envs = make("Steady", workers=1)
    envs.reset()
    kill(envs.worker_pids[0], signal.SIGABRT)
    obs, _ = envs.reset()
    assert obs[:, 2].tolist() == first_seeds(1)
    assert "signal 6 (SIGABRT)" in envs.incidents[0].reason
    envs.close()


def test_signals_that_ask_a_run_to_stop_leave_its_workers_alone():
    envs = make("Steady", workers=1, worker_restarts=0)
    envs.reset()
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(envs.worker_pids[0], number)
        envs.step(ACTIONS)
    assert envs.step(ACTIONS).obs[:, 0].tolist() == [3, 3, 3, 3]
    envs.close()


def test_an_env_that_hangs_is_shown_with_its_stack():
    envs = make("Hangs", worker_timeout_seconds=1, options={"bad_seed": 6})
    envs.reset()
    steps = [envs.step(ACTIONS) for _ in range(4)]
    assert steps[2].truncated.tolist() == [True, True, False, False]
    assert steps[3].obs[:, 0].tolist() == [1, 1, 4, 4]
    (incident,) = envs.incidents
    assert "did not answer within 1 s" in incident.reason
    assert "in trouble" in incident.stack
    envs.close()


def test_a_stopped_worker_counts_as_one_that_hangs():
    envs = make("Steady", worker_timeout_seconds=1, worker_restarts=0)
    envs.reset()
    kill(envs.worker_pids[0], signal.SIGSTOP)
    with pytest.raises(EnvError, match=r"envs 0-1 did not answer within 1 s") as caught:
        envs.step(ACTIONS)
    assert "serve.py" in caught.value.message
    envs.close()


@pytest.mark.parametrize("trouble", ["stopped", "closing", "dead"])
def test_closing_does_not_wait_for_workers_that_cannot_answer(trouble, monkeypatch):
    monkeypatch.setattr(supervisor, "LEAVE_SECONDS", 0.3)
    envs = make("HangsClosing" if trouble == "closing" else "Steady", workers=1)
    envs.reset()
    for pid in envs.worker_pids:
        if trouble != "closing":
            kill(pid, signal.SIGSTOP if trouble == "stopped" else signal.SIGKILL)
    start = time.monotonic()
    envs.close()
    assert time.monotonic() - start < 20.0  # not the 60 s that it would wait for an answer


def test_what_an_env_started_ends_with_it():
    envs = make("Breeds")
    obs, _ = envs.reset()
    children = [int(pid) for pid in obs[:, 1]]
    kill(envs.worker_pids[0], signal.SIGKILL)
    step = envs.step(ACTIONS)  # noticed although a child still holds the worker's line
    assert step.truncated.tolist() == [True, True, False, False]
    assert wait_until(lambda: not any(is_running(pid) for pid in children[:2]))
    assert all(is_running(pid) for pid in children[2:])
    envs.close()
    assert wait_until(lambda: not any(is_running(pid) for pid in [*children, *map(int, step.obs[:, 1])]))


def is_running(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


SIGNALS: list[int] = [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS]


def kill_often(times: int) -> None:
    """Kill one worker after the other in the middle of play, by each signal in turn; every env's count must fit its
    broken episodes."""
    generator = np.random.default_rng(times)
    envs = make("Steady", worker_restarts=times)
    _obs, _ = envs.reset()
    envs.step(ACTIONS)
    handles, restarts = psutil.Process().num_fds(), [0, 0]
    for count in range(times):
        worker, number = int(generator.integers(2)), SIGNALS[count % len(SIGNALS)]
        before = [envs.step(ACTIONS) for _ in range(int(generator.integers(1, 20)))][-1]
        os.kill(envs.worker_pids[worker], number)
        steps = [envs.step(ACTIONS)]
        while not steps[-1].truncated.any():  # a signal takes its time
            before, steps = steps[-1], [envs.step(ACTIONS)]
        rows = slice(2 * worker, 2 * worker + 2)
        restarts[worker] += 1
        assert steps[-1].truncated.nonzero()[0].tolist() == list(range(4))[rows]
        assert np.array_equal(steps[-1].final_obs[rows], before.obs[rows])
        assert steps[-1].obs[rows, 2].tolist() == first_seeds(restarts[worker])[rows]
    assert len(envs.incidents) == times
    assert psutil.Process().num_fds() == handles
    envs.close()


def test_a_kill_by_each_signal_leaves_nothing_behind():
    kill_often(len(SIGNALS))


@pytest.mark.slow
def test_a_hundred_kills_leave_nothing_behind():
    kill_often(100)


OWNER = """
import os, signal, sys, time
import numpy as np
from hotloop.envs.registry import make_envs
from hotloop.presets.env_settings import EnvSettings
name, trouble = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with Ctrl-C ignored
settings = EnvSettings(id=name, num_envs=4, workers=2, options={"bad_seed": 6} if "Hangs" in name else {})
envs = make_envs(settings, 4, np.arange(5, 9).astype(np.uint64))
envs.reset()
if trouble == "stopped":
    for pid in envs.worker_pids:
        os.kill(pid, signal.SIGSTOP)
print(*envs.worker_pids, flush=True)
try:
    while True:
        envs.step(np.zeros(4, np.int64))
except KeyboardInterrupt:
    envs.close()
    print("closed", flush=True)
"""


def run_owner(name: str, trouble: str = "") -> tuple[subprocess.Popen[str], list[int]]:
    pipe = subprocess.PIPE
    words = [sys.executable, "-c", OWNER, f"{FILE}:{name}", trouble]
    owner = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    assert owner.stdout is not None
    return owner, [int(word) for word in owner.stdout.readline().split()]


def wait_until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize(("name", "trouble"), [("Steady", ""), ("Hangs", ""), ("Steady", "stopped")])
def test_workers_do_not_outlive_their_owner(name, trouble):
    owner, pids = run_owner(name, trouble)
    time.sleep(0.2)
    owner.kill()
    owner.communicate()
    assert len(pids) == 2
    assert wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_control_c_prints_nothing_of_the_workers():
    owner, pids = run_owner("Steady")
    time.sleep(0.2)
    os.killpg(owner.pid, signal.SIGINT)
    try:
        output, errors = owner.communicate(timeout=30)
    finally:
        owner.kill()
    assert (output, errors, owner.returncode) == ("closed\n", "", 0)
    assert not any(is_running(pid) for pid in pids)
