"""Kernels compiled by a second process: found by the first, and nothing left behind whoever ends first."""

import json
import os
import signal
import subprocess
import sys
import time

import numba
import pytest

import hotloop
from hotloop.core import kernel_cache
from hotloop.core.own_folders import NoFolder
from hotloop.loop import rehearsal

RUN = """
import json, sys, warnings
from numba.core import event
import hotloop
from hotloop.cli.arguments import settings_from_argv

compiled = []
class Listener(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"].py_func.__module__)
    def on_end(self, event): pass

words = ["--run-dir", sys.argv[1], "--total-env-steps", "40", "--learning-starts", "20", "--learner.lane", "eager"]
words += ["--evaluation.final-episodes", "1", "--evaluation.episodes", "1", "--replay.prioritized", "true"]
said = []
class Progress:
    def say(self, text): said.append(text)
    def show(self, *given): pass
with event.install_listener("numba:compile", Listener()):
    hotloop.train(settings_from_argv("cartpole-dqn", words), progress=Progress())
print(json.dumps({"compiled": sorted(set(compiled)), "said": said}))
"""


def run(folder, cache):
    words = [sys.executable, "-c", RUN, str(folder)]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=300, env=os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core compiles everything itself")
def test_what_the_second_process_compiled_is_not_compiled_again(tmp_path):
    said = run(tmp_path / "run", tmp_path / "cache")
    assert not [module for module in said["compiled"] if module.startswith(("hotloop.envs.", "hotloop.replay."))]
    assert any("second process" in text for text in said["said"])
    assert list((tmp_path / "cache" / "hotloop-kernels").glob("rehearsed-*"))


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Nothing was ever compiled, and there are two cores."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    return hotloop.preset("snake-dqn")


def test_the_end_of_a_run_ends_its_rehearsal(fresh):
    with rehearsal.rehearsing(fresh, lambda text: None):
        (process,) = rehearsal._under_way
        assert process.poll() is None
    assert process.returncode == -signal.SIGKILL
    assert rehearsal._under_way == {}


def test_a_killed_run_takes_its_rehearsal_with_it(tmp_path):
    program = (
        "import os, time, hotloop\nfrom hotloop.loop import rehearsal\nos.sched_getaffinity = lambda pid: {0, 1}\n"
        "with rehearsal.rehearsing(hotloop.preset('snake-dqn'), lambda text: None):\n"
        "    print(next(iter(rehearsal._under_way)).pid, flush=True)\n    time.sleep(600)\n"
    )
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=variables) as run:
        number = int(run.stdout.readline())
        assert is_alive(number)
        run.kill()
    end = time.monotonic() + 60
    while is_alive(number) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_alive(number)


def is_alive(number):
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_rehearsal_that_fails_is_no_obstacle(fresh, monkeypatch):
    monkeypatch.setattr(rehearsal, "PROGRAM", "hotloop.no_such_module")
    with rehearsal.rehearsing(fresh, lambda text: None):
        rehearsal.finish_rehearsal()
        (process,) = rehearsal._under_way
        assert process.returncode == 1
    assert not list((kernel_cache.kernels_folder()).glob("rehearsed-*"))


def no_folder():
    raise NoFolder("none")


def no_process(*given, **named):
    raise OSError(11, "Resource temporarily unavailable")


@pytest.mark.parametrize("why", ["one core", "no folder", "a foreign env", "done before", "no more processes"])
def test_there_is_no_second_process_where_it_would_not_pay(fresh, monkeypatch, why):
    settings = fresh
    if why == "one core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
    elif why == "no folder":
        monkeypatch.setattr(rehearsal, "kernels_folder", no_folder)
    elif why == "a foreign env":
        settings = hotloop.preset("lunarlander-dqn")
    elif why == "no more processes":
        monkeypatch.setattr(subprocess, "Popen", no_process)
    else:
        rehearsal._mark_of(settings).touch()
    with rehearsal.rehearsing(settings, lambda text: pytest.fail(text)):
        assert rehearsal._under_way == {}
        rehearsal.finish_rehearsal()


@pytest.mark.parametrize("preset", ["cartpole-ppo", "sfc-rainbow", "durotaxis-per-node", "snake-ppo"])
def test_every_family_and_kind_of_action_can_be_rehearsed(preset):
    rehearsal.rehearse(hotloop.preset(preset))
