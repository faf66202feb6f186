"""Whatever ends a run, a report of what was seen comes back, and nothing is left behind."""

import json
import random
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from hotloop.doctor.recorder import recording
from hotloop.doctor.recorder.order import Order
from hotloop.doctor.script import ScriptPlan, process, record_script

ENV = """
import os, signal, sys, time
class Corridor:
    def reset(self):
        self.place = 0
        return self.place
    def step(self, action):
        self.place += 1
        return self.place, 1.0, self.place % 5 == 0, {}
env = Corridor()
env.reset()
env.step(0)
def walk(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        env.step(0)
"""
QUICK = {"counting": False, "threads": False}


def record(tmp_path, text, **plan):
    script = tmp_path / "train.py"
    script.write_text(ENV + textwrap.dedent(text))
    return record_script(script, (), ScriptPlan(**{**QUICK, **plan}), lambda _: None)


def ends_around_its_bound(tmp_path, when, window=0.3):
    """The script ends by itself when the doctor is about to end it."""
    trace = record(tmp_path, f"walk({when!r})\nprint('end')", seconds=window)
    assert trace.subject.ending in ("finished", "limit"), trace.subject
    assert (trace.subject.exit_code, trace.subject.error) in ((0, ""), (None, ""))
    assert trace.counts.env_steps > 10
    assert sum(trace.phases.values()) == pytest.approx(trace.seconds)


def test_20_scripts_that_end_by_themselves_around_the_windows_end_are_not_lost(tmp_path):
    for place in range(20):
        ends_around_its_bound(tmp_path, 0.12 + 0.003 * place, window=0.15)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_200_ends_at_random_moments_around_the_windows_end_leave_200_reports(tmp_path):
    draw = random.Random(7)
    for _ in range(200):
        ends_around_its_bound(tmp_path, draw.uniform(0.25, 0.35))


REPLACES = """
import builtins, json, os, time
def of_the_program(*arguments, **named):
    raise RuntimeError("replaced by the program")
json.dumps = json.dump = json.JSONEncoder = builtins.open = of_the_program
os.replace = os.rename = os.listdir = os.stat = os.getpid = time.monotonic = of_the_program
"""


def test_a_program_that_replaces_what_python_writes_files_with_is_recorded_as_any_other(tmp_path, capfd):
    """The recorder keeps the originals."""
    trace = record(tmp_path, f"{REPLACES}\nwalk(0.4)", seconds=0.2)
    assert (trace.subject.ending, trace.subject.error) == ("limit", "")
    assert trace.counts.env_steps > 10
    assert "replaced by the program" not in " ".join(trace.notes)
    assert "replaced by the program" not in capfd.readouterr().err


def test_what_a_killed_process_had_written_down_is_reported(tmp_path):
    trace = record(tmp_path, "walk(2.2)\nos.kill(os.getpid(), signal.SIGKILL)")
    assert (trace.subject.ending, trace.subject.exit_code) == ("crashed", -9)
    assert trace.counts.env_steps > 10
    assert 1.0 <= trace.loop_seconds + trace.phases["recording"] <= 3.0
    assert any("that were written down before" in note for note in trace.notes)


def test_a_script_that_never_returns_to_python_is_ended_from_outside(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "SAVING", 0.5)
    monkeypatch.setattr(process, "GRACE", 0.5)
    trace = record(tmp_path, "walk(1.5)\nsum(range(10 ** 13))", seconds=2.0)
    assert trace.subject.ending == "limit"
    assert trace.counts.env_steps > 10
    assert any("did not end within its limit and was killed" in note for note in trace.notes)


def test_a_script_that_blocks_and_catches_everything_is_ended_with_its_workers(tmp_path, monkeypatch):
    text = """
    import subprocess
    worker = subprocess.Popen(["sleep", "1000"])
    print(worker.pid, file=open("pid.txt", "w"), flush=True)
    walk(0.1)
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass
    """
    monkeypatch.chdir(tmp_path)
    trace = record(tmp_path, text, seconds=0.3)
    assert trace.subject.ending == "limit"
    assert not psutil.pid_exists(int((tmp_path / "pid.txt").read_text()))


def started_doctor(tmp_path, text):
    (tmp_path / "train.py").write_text(ENV + text)
    program = (
        "import json; from pathlib import Path; from hotloop.doctor.script import *\n"
        "trace = record_script(Path('train.py'), (), ScriptPlan(), lambda _: None)\n"
        "print(json.dumps([trace.subject.ending, trace.counts.env_steps, list(trace.notes)]))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_doctor_that_is_asked_to_end_still_reports_and_says_what_is_missing(tmp_path, number, monkeypatch):
    doctor = started_doctor(tmp_path, "print('on', flush=True)\nwalk(1000)\n")
    assert doctor.stderr.readline() == "on\n"
    time.sleep(0.3)
    doctor.send_signal(number)  # it alone: the script knows nothing
    ending, env_steps, notes = json.loads(doctor.communicate(timeout=60)[0])
    assert (ending, env_steps > 10) == ("interrupted", True)
    assert any(note.startswith("interrupted: calls were not counted") for note in notes)


def test_total_time_is_three_windows_at_most():
    plan = ScriptPlan(seconds=10.0, ops=True)
    runs = (plan.seconds, plan.time_to_count, plan.time_to_compare, plan.time_for_operators)
    assert sum(runs) + len(runs) * plan.overtime <= 3 * plan.seconds
    assert (plan.runs, ScriptPlan(**QUICK).runs) == (4, 1)


def test_an_order_survives_the_way_to_the_child():
    order = Order(script="a.py", kind="timing", seconds=2.0, result="r", arguments=("--x", "1"), env_classes=("E",))
    assert recording.read_order(order.as_json()) == order
    assert recording.read_order(json.dumps({**json.loads(order.as_json()), "new": 1})) == order
