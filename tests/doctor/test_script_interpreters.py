"""The recorder in other people's interpreters: PyPy, where it is installed; old Gymnasium and gym in environments of
their own, where a package index is at hand. What could not be run is a skip that says so."""

import shutil
import subprocess
import sys
import venv

import pytest

from hotloop.doctor.script import ScriptPlan, record_script

PLAIN = """
class Corridor:
    def reset(self):
        self.place = 0
        return self.place
    def step(self, action):
        self.place += 1
        return self.place, 1.0, self.place % 5 == 0, {}
env, rows = Corridor(), []
env.reset()
for _ in range(300):
    env.step(0)
    rows.insert(0, 1)
"""
CARTPOLE = """
import NAME as gym
env = gym.make("CartPole-v1")
env.reset()
for _ in range(300):
    if any(env.step(env.action_space.sample())[2:-1]):
        env.reset()
"""


def recorded(tmp_path, text, python):
    script = tmp_path / "train.py"
    script.write_text(text)
    return record_script(script, (), ScriptPlan(threads=False, python=python), lambda _: None)


@pytest.mark.slow
def test_pypy_runs_the_recorder(tmp_path):
    pypy = shutil.which("pypy3")
    if pypy is None:
        pytest.skip("not run: no pypy3 on this machine (Debian: apt install pypy3)")
    trace = recorded(tmp_path, PLAIN, pypy)
    assert (trace.subject.ending, trace.counts.env_steps, trace.counts.episodes) == ("finished", 300, 60)
    assert trace.machine["implementation"] == "PyPy"
    (insert,) = trace.calls_named("list.insert")
    assert (insert.where, insert.largest > 100) == ("train.py:13", True)
    assert not [note for note in trace.notes if "part of the recorder failed" in note]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wanted"), [("gymnasium", "gymnasium==0.29.1"), ("gym", "gym==0.26.2")])
def test_an_environment_with_an_older_library_runs_the_recorder(tmp_path, name, wanted):
    venv.create(tmp_path / "venv", with_pip=False)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wanted, "numpy<2"]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"not run: {wanted} could not be installed")
    trace = recorded(tmp_path, CARTPOLE.replace("NAME", name), python)
    assert (trace.subject.ending, trace.counts.env_steps) == ("finished", 300), trace.subject
    assert trace.counts.episodes > 3
    assert trace.machine[name] == wanted.partition("==")[2]
