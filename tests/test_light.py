"""`pip install hotloop` without the extra `train`: the instruments work, and a verb that trains says what it needs.

Everything here runs in an environment that has the base dependencies alone: no PyTorch, numba, Gymnasium, scipy,
networkx or Pillow, for children and grandchildren too.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli.main import VERBS
from hotloop.core.extras import TRAIN
from tests.light_environment import LightEnvironment, closure, declared

HEAVY = {*TRAIN, "scipy", "llvmlite", "ray"}
SLOW = """
import sys

import numpy as np

rng = np.random.default_rng(int(sys.argv[1]) if sys.argv[1:] else 0)


class Env:
    def reset(self, seed=None, options=None):
        self.age = 0
        return np.zeros(4), {}

    def step(self, action):
        self.age += 1
        return rng.random(4), float(self.age % 3), self.age >= 20, False, {}


env = Env()
obs, _ = env.reset(seed=0)
weights = np.zeros((4, 4))
for _ in range(4_000):
    obs, reward, terminated, truncated, _ = env.step(0)
    weights = weights + 0.01 * np.outer(obs, obs) @ np.eye(4)
    if terminated:
        obs, _ = env.reset()
"""
PAIRS = """
import numpy as np

import hotloop


def plain(x):
    return np.array([2 * value for value in x])


@hotloop.pair(plain, (np.arange(8.0),))
def fast(x):
    return 2 * x
"""


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> LightEnvironment:
    return LightEnvironment(tmp_path_factory.mktemp("light") / "env", "dashboard")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "slow.py").write_text(SLOW)
    (folder / "fast.py").write_text(SLOW.replace(" @ np.eye(4)", ""))
    (folder / "pairs.py").write_text(PAIRS)
    return folder


def answer_of(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_that_trains_is_there(light: LightEnvironment, tmp_path: Path) -> None:
    program = f"import importlib.util as u; print([name for name in {sorted(HEAVY)!r} if u.find_spec(name)])"
    code = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {program!r}], text=True).returncode)"
    done = subprocess.run(
        [light.python, "-c", code], env=light.variables(), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n0\n", done.stderr


def test_the_base_dependencies_are_five_and_need_nothing_heavy() -> None:
    assert declared() == ["rich", "psutil", "numpy", "safetensors", "tomli-w"]
    assert not {package.name.lower() for package in closure(declared())} & {name.lower() for name in HEAVY}


def test_the_doctor_diagnoses_a_plain_script(light: LightEnvironment, scripts: Path) -> None:
    found = answer_of(light.hotloop("doctor", "--json", "--seconds", "3", "slow.py", cwd=scripts))
    assert found["counts"]["env_steps"] > 0
    assert "env" in found["phases"]


def test_prove_holds_two_scripts_and_two_functions_equal(light: LightEnvironment, scripts: Path) -> None:
    words = "--script slow.py --against fast.py --rounds 0 --env-steps 500 --json"
    (programs,) = answer_of(light.hotloop("prove", *words.split(), cwd=scripts))["pairs"]
    assert (programs["verdict"], programs["evidence"]["env steps"]) == ("identical", 500)
    (functions,) = answer_of(light.hotloop("prove", "pairs.py", "--seconds", "0.01", "--json", cwd=scripts))["pairs"]
    assert functions["verdict"] == "identical"


def test_compare_judges_two_scripts_and_runs_lists_them(light: LightEnvironment, scripts: Path, tmp_path: Path) -> None:
    arms = [f"{name}={scripts}/{name}.py {{seed}}" for name in ("slow", "fast")]
    found = answer_of(light.hotloop("compare", *arms, "--seeds", "2", "--json", "--html", "page.html", cwd=tmp_path))
    assert len(found["contrasts"]) == 1
    assert (tmp_path / "page.html").stat().st_size > 10_000
    (folder,) = (tmp_path / "runs").iterdir()
    assert {path.name for path in folder.glob("curve-*")} == {"curve-env-steps.svg", "curve-seconds.svg"}
    assert light.hotloop("runs", cwd=tmp_path).returncode == 0
    said = light.hotloop("compare", *arms, "--seeds", "2", cwd=tmp_path).stdout
    assert ".png takes Pillow" in said


def test_the_dashboard_starts(light: LightEnvironment, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    code = "from hotloop.cli.main import main; raise SystemExit(main())"
    command = [light.python, "-I", "-c", code, "dashboard", "--no-browser", "--port", "0"]
    serving = subprocess.Popen(command, cwd=tmp_path, env=light.variables(), stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    try:
        assert serving.stdout.readline().startswith("http://127.0.0.1:")
    finally:
        serving.terminate()
        serving.wait(60)
        serving.stdout.close()


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_explains_itself(light: LightEnvironment, tmp_path: Path, verb: str) -> None:
    done = light.hotloop(verb, "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: hotloop {verb}")


def refusals() -> Iterator[list[str]]:
    """Verbs as they would be asked to train, play, draw or write an agent."""
    yield ["train", "cartpole-dqn"]
    yield ["compare", "cartpole-dqn", "cartpole-ppo", "--seeds", "2"]
    yield ["doctor", "cartpole-dqn"]
    yield ["envs"]
    yield ["envs", "check", "cartpole"]
    yield ["prove", "--env", "cartpole", "--against", "cartpole"]
    yield ["prove", "--module", "net.py:Net", "--against", "net.py:Net"]
    for verb in ("resume", "evaluate", "watch", "report", "debug-nan"):
        yield [verb, "runs/some-run"]
    yield ["export", "runs/some-run", "--torch", "agent.safetensors"]


@pytest.mark.parametrize("words", list(refusals()), ids=lambda words: " ".join(words[:2]))
def test_what_trains_is_refused_in_one_sentence(light: LightEnvironment, tmp_path: Path, words: list[str]) -> None:
    done = light.hotloop(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    sentence, _, hint = done.stderr.partition("\n\n")
    assert sentence.startswith("error: ")
    assert sentence.endswith("which is not installed")
    assert any(f"needs {name}" in sentence for name in TRAIN.values())
    assert hint == "hint: pip install 'hotloop[train]'\n"
    assert not list(tmp_path.iterdir())


def test_what_needs_another_extra_names_that(light: LightEnvironment, tmp_path: Path) -> None:
    done = light.hotloop("tune", "cartpole-dqn", "--search", "n_step=1,3", "--trials", "2", cwd=tmp_path)
    wanted = "error: searching needs `optuna`, which is not installed\n\nhint: pip install 'hotloop[tune]'\n"
    assert (done.returncode, done.stderr) == (2, wanted)


def test_python_gets_the_same_sentence_and_settings_without_it(light: LightEnvironment, tmp_path: Path) -> None:
    program = (
        "import hotloop\n"
        "print(hotloop.preset('cartpole-dqn', seed=3).seed, hotloop.PPOSettings().gamma)\n"
        "try:\n    hotloop.train\nexcept hotloop.HotloopError as error:\n    print(error.message, '|', error.hint)\n"
    )
    done = subprocess.run(
        [light.python, "-c", program], env=light.variables(), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines() == [
        "3 0.99",
        "`hotloop.train` needs PyTorch, which is not installed | pip install 'hotloop[train]'",
    ], done.stderr


def test_installed_in_full_nothing_is_refused() -> None:
    from hotloop.core.extras import can_train, explained_imports, require_training

    assert can_train()
    require_training("training")
    with pytest.raises(ModuleNotFoundError, match="nowhere"), explained_imports("`hotloop train`"):
        import nowhere  # noqa: F401
