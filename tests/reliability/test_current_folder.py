"""Files that lie in the current folder, which may be a run that somebody sent, are not run: `python -m` and `python -c`
put it first on the path of our children (as in CVE-2022-21699), where every name of Python's and of other libraries can
be hidden. Each file here notes that it was imported."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import hotloop
from hotloop.core.children import FOLDER_OF_PACKAGE, own_child, safe_path
from hotloop.core.keeper import Keeper
from hotloop.loop import rehearsal

HOTLOOP = str(Path(sys.executable).with_name("hotloop"))
SMALL = "--env.workers 1 --total-env-steps 300 --learning-starts 100 --batch-size 8 --network.hidden 8"
SMALL += " --evaluation.every 300 --evaluation.episodes 1 --evaluation.final-episodes 1"
TRAIN = f"dqn --env.id CartPole-v1 {SMALL}"
MARK = "was-imported"
NEIGHBORS = """
import gymnasium
from neighbor import LENGTH

class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.observation_space.sample() * 0, {}

    def step(self, action):
        self.count += 1
        return self.observation_space.sample() * 0, 1.0, self.count >= LENGTH, False, {}
"""


def names_of_python_itself(folder: Path) -> set[str]:
    """What `python -m` imports before it comes to the module, from the current folder too: nobody can help that."""
    (folder / "only_looks.py").write_text("import sys; print(*{name.partition('.')[0] for name in sys.modules})")
    done = subprocess.run([sys.executable, "-m", "only_looks"], cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def plant(folder: Path, besides: set[str] = frozenset()) -> Path:
    names = sys.stdlib_module_names | packages_distributions().keys() | {"sitecustomize", "usercustomize"}
    text = f"open({str(folder.resolve() / MARK)!r}, 'a').write(__name__ + ' ')\nraise ImportError('planted')\n"
    for name in names - besides - {"hotloop", "__main__"}:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(text)
    return folder


def imported(folder: Path) -> str:
    mark = folder / MARK
    return mark.read_text() if mark.exists() else ""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("received")
    native = f"cartpole-dqn {SMALL.partition(' 1 ')[2]}"
    for words, name in ((TRAIN, "run"), (native, "run/native")):
        subprocess.run([HOTLOOP, "train", *words.split(), "--quiet", "--run-dir", str(folder / name)], check=True)
    return folder / "run"


@pytest.fixture
def hostile(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a finished run with files beside its own."""
    folder = plant(shutil.copytree(trained, tmp_path / "run"))
    monkeypatch.chdir(folder)
    return folder


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=280)


def test_what_is_planted_is_run_where_the_current_folder_comes_first(hostile):
    run(sys.executable, "-c", "import json")
    assert imported(hostile) == "json "


VERBS = {
    "evaluate": "evaluate . --episodes 1",
    "resume": "resume . --quiet",
    "watch": "watch native --frames frames --max-frames 2",
    "train": f"train {TRAIN} --run-dir trained",
    "seeds": f"train {TRAIN} --seeds 2 --out seeds",
    "tune": f"tune {TRAIN} --search optimizer.learning_rate=1e-4..1e-3:log --trials 1",
    "report": "report .",
    "envs": "envs check CartPole-v1",
}


@pytest.mark.parametrize("verb", [*VERBS])
def test_no_verb_imports_what_lies_in_the_current_folder(hostile, verb):
    if verb == "resume":
        (hostile / "result.json").unlink()
    done = run(HOTLOOP, *VERBS[verb].split())
    assert done.returncode == 0, done.stderr
    assert imported(hostile) == ""


def test_compare_and_job_run_import_nothing_of_it(hostile):
    compare = (HOTLOOP, "compare", f"one={TRAIN}", f"two={TRAIN} --double", "--seeds", "1")
    for words in ((*compare, "--plan", "jobs.jsonl"), (HOTLOOP, "job", "run", "jobs.jsonl", "--index", "0"), compare):
        done = run(*words)
        assert done.returncode in (0, 3), done.stderr
    assert imported(hostile) == ""


def test_python_m_hotloop_cleans_its_path_first(trained, tmp_path):
    folder = plant(shutil.copytree(trained, tmp_path / "run"), besides=names_of_python_itself(tmp_path))
    words = [sys.executable, "-m", "hotloop", "evaluate", ".", "--episodes", "1"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert imported(folder) == ""


def test_a_doctor_from_there_reads_a_script_elsewhere(hostile, tmp_path):
    script = tmp_path / "elsewhere" / "train.py"
    script.parent.mkdir()
    script.write_text("import json, random, sys\nprint(sys.path[0])\n")
    done = run(HOTLOOP, "doctor", str(script))
    assert str(script.parent) in done.stderr
    assert imported(hostile) == ""


def test_what_the_dashboard_starts_imports_nothing_of_it(hostile):
    jobs = pytest.importorskip("hotloop.dashboard.jobs").Jobs()
    try:
        made = [jobs.play("id", hostile / "native", "", 0), jobs.evaluate("id", hostile, 1)]
        made.append(jobs.resume("id", hostile, 400))
        end = time.monotonic() + 200
        while time.monotonic() < end and any(job.state == "running" for job in made):
            time.sleep(0.1)
    finally:
        jobs.close()
    assert [job.state for job in made] == ["done"] * 3, [job.said for job in made]
    assert imported(hostile) == ""


def test_keeper_rehearsal_and_the_question_how_a_machine_rounds(hostile, tmp_path):
    with Keeper():
        pass
    mark = tmp_path / "rehearsed"
    process = rehearsal._start(hotloop.preset("cartpole-dqn"), mark)
    assert process is not None
    assert process.wait(200) == 0
    process.communicate()
    from hotloop.scale import node

    assert "computed" in node.facts()
    assert imported(hostile) == ""


def test_workers_of_ray_do_not_have_the_current_folder(hostile):
    pytest.importorskip("ray")
    done = run(HOTLOOP, "train", *TRAIN.split(), "--seeds", "1", "--out", "seeds", "--on", "ray")
    assert done.returncode == 0, done.stderr
    assert imported(hostile) == ""


def test_an_env_of_ones_own_still_finds_its_neighbors_in_a_worker(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own_env.py").write_text(NEIGHBORS)
    (tmp_path / "mine" / "neighbor.py").write_text("LENGTH = 7\n")
    done = run(HOTLOOP, "train", "dqn", "--env.id", "mine/own_env.py:Env", *SMALL.split(), "--run-dir", "run")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "result.json").read_text())["env_steps"] == 300


def test_what_follows_the_current_folder_about_comes_last(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    here = str(tmp_path)
    assert safe_path(["", "/lib", "near", "/site"]) == ["/lib", "/site", FOLDER_OF_PACKAGE, here, f"{here}/near"]
    assert safe_path([here, "/lib"]) == [here, "/lib", FOLDER_OF_PACKAGE]  # a script's own folder
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([".", "/named"]))
    assert safe_path([here, "/named", "/lib"]) == ["/named", "/lib", FOLDER_OF_PACKAGE, here]
    monkeypatch.setenv("PYTHONPATH", ":/named")
    assert safe_path([here, "/named", "/lib"]) == ["/named", "/lib", FOLDER_OF_PACKAGE, here]


def test_a_child_is_told_words_and_path(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "told.py").write_text("import sys\ndef main():\n    print(sys.argv, sys.path[0])\n    return 3\n")
    done = run(*own_child("told", "one", "two words"))
    assert (done.returncode, done.stdout) == (3, f"['told', 'one', 'two words'] {tmp_path}\n")
