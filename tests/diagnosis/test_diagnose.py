"""`hotloop doctor` from Python: `diagnose` on a script, on settings and on names; what a `Diagnosis` offers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from hotloop import api
from hotloop.core.errors import EnvError, SettingsError
from hotloop.diagnosis.diagnose import Diagnosis, diagnose
from hotloop.doctor.growth import growth_over_envs, growth_over_fill, growth_over_run, with_growth
from hotloop.doctor.trace import Counts, Slice, Subject, Trace

SCRIPT = """
import sys

class Env:
    def reset(self):
        return 0.0

    def step(self, action):
        total = sum(range(200))
        return float(total), 1.0, False, False, {}

env = Env()
env.reset()
for step in range(int(sys.argv[1])):
    env.step(0)
"""
CORRIDOR = """
import gymnasium
import numpy as np

class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.place += 1
        return np.zeros(1, np.float32), 1.0, self.place == 5, False, {}
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Diagnosis]:
    path = tmp_path_factory.mktemp("script") / "train.py"
    path.write_text(SCRIPT)
    return path, diagnose(path, ["3000"], quick=True)


def test_a_script_is_diagnosed_with_its_own_arguments(script: tuple[Path, Diagnosis]) -> None:
    path, found = script
    assert found.trace.subject.name == str(path)
    assert found.trace.subject.arguments == ("3000",)
    assert found.trace.counts.env_steps == 3_000
    assert found.microseconds_per_env_step == pytest.approx(1e6 * found.trace.loop_seconds / 3_000)


def test_a_module_of_a_package_is_diagnosed_as_python_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its relative imports work, and a script beside the package is found; in the copy for counting too."""
    package = tmp_path / "lander"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "env.py").write_text(SCRIPT.partition("env = Env()")[0])
    (tmp_path / "steps.py").write_text("COUNT = 3000")
    tail = "env = Env()\nenv.reset()\nfor step in range(steps.COUNT):\n    env.step(0)\n"
    (package / "train.py").write_text(f"import steps\nfrom .env import Env\nassert __name__ == '__main__'\n{tail}")
    monkeypatch.chdir(tmp_path)
    found = diagnose("lander.train", module=True)
    assert (found.trace.subject.ending, found.trace.counts.env_steps) == ("finished", 3_000)
    assert found.trace.counted.env_steps > 0
    with pytest.raises(SettingsError, match="no module lander.test below this folder"):
        diagnose("lander.test", module=True)


def test_a_diagnosis_is_written_and_read_again_as_the_older_one(script: tuple[Path, Diagnosis], tmp_path: Path) -> None:
    path, found = script
    files = {"html": tmp_path / "page.html", "trace": tmp_path / "trace.json", "save": tmp_path / "old.json"}
    assert found.write(**files) == list(files.values())
    assert files["html"].read_text().startswith("<!doctype html>")
    assert json.loads(files["trace"].read_text())["traceEvents"]
    assert json.loads(files["save"].read_text()) == json.loads(json.dumps(found.as_json()))
    again = diagnose(str(path), ["3000"], quick=True, against=files["save"])
    assert again.against is not None
    assert again.as_json()["against"]["rows"][0]["what"] == "loop"


def test_settings_are_diagnosed_under_a_label_and_say_what_happens() -> None:
    said: list[str] = []
    settings = api.preset("cartpole-dqn", env={"num_envs": 2}, learning_starts=200)
    found = diagnose(settings, seconds=0.2, quick=True, label="mine", say=said.append)
    assert found.trace.subject.kind == "preset"
    assert found.trace.subject.name == "mine"
    assert found.trace.counts.env_steps == 2 * found.trace.counts.env_calls > 0
    assert said == ["training mine for 0.2 s"]


def test_an_env_of_ones_own_is_run_where_settings_are_handed_over_and_not_where_a_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "corridor.py").write_text(CORRIDOR)
    env_id = f"{tmp_path / 'corridor.py'}:Corridor"
    settings = api.preset("cartpole-dqn", env={"id": env_id}, total_env_steps=400, learner={"lane": "eager"})
    assert diagnose(settings, seconds=0.1, quick=True).trace.counts.env_steps > 0
    (tmp_path / "settings.toml").write_text(f'algorithm = "dqn"\n[env]\nid = "{env_id}"\n')
    with pytest.raises(EnvError, match="runs code from outside hotloop"):
        diagnose(tmp_path / "settings.toml", seconds=0.1, quick=True)


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        ("cartpole-dqn", {"env_steps": 5}, "`--env-steps` is for scripts"),
        ("cartpole-dqn", {"env_classes": ["Env"]}, "`--env` is for scripts"),
        ("cartpole-dqn", {"ops": True}, "`--ops` is for scripts"),
        ("cartpole-dqn", {"seconds": 0.0}, "expected above 0"),
        ("cartpole-dqn", {"against": "nowhere.json"}, "cannot read nowhere.json"),
        ("cartpole-dqm", {}, "cartpole-dqn"),
        ("nothing.py", {}, "there is no script nothing.py"),
    ],
)
def test_mistakes_are_told_before_anything_runs(target: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        diagnose(target, **options)  # type: ignore[arg-type]


def of_timeline(*slices: Slice) -> Trace:
    subject = Subject(kind="preset", name="made")
    env_steps = sum(one.env_steps for one in slices)
    seconds = sum(one.seconds for one in slices)
    return Trace(
        subject=subject,
        machine={},
        seconds=seconds,
        phases={"env": seconds},
        counts=Counts(env_steps=env_steps),
        timeline=slices,
    )


def part(seconds: float, sample: float = 0.0) -> Slice:
    phases = {"env": seconds - sample, "sample": sample}
    return Slice(start_seconds=0.0, seconds=seconds, env_steps=100, episodes=1, updates=10, phases=phases)


def test_a_loop_is_slower_than_a_budget_or_it_is_not() -> None:
    found = Diagnosis(of_timeline(part(2e-3)), [])  # 20 us per env step
    assert found.slower_than(25.0) == ""
    assert found.slower_than(15.0) == "over budget: 20 us per env step, 15 allowed"


def test_all_growth_comes_from_one_place() -> None:
    trace = of_timeline(*[part(1e-3 * (1 + index), 1e-4 * (1 + index)) for index in range(20)])
    grown = with_growth(trace, capacity=1_000, by_envs={8: 2e-6, 1: 4e-6})
    run, fill = growth_over_run(trace.timeline), growth_over_fill(trace.timeline, 1_000)
    (envs,) = growth_over_envs({8: 2e-6, 1: 4e-6})
    assert grown.growth == (*run, *fill, envs)
    assert fill[0].points[0] == (100.0, pytest.approx(10.0))  # 1e-4 s over 10 updates, in microseconds
    assert fill[0].points[-1][0] == 1_000.0  # up to 1.2 times the capacity, told as full
    assert (envs.points, envs.ratio) == (((1.0, 4.0), (8.0, 2.0)), 0.5)
    assert with_growth(dataclasses.replace(trace, timeline=())).growth == ()
