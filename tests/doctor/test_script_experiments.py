"""`hotloop doctor --experiments` on whole programs. No time is asserted: what was tried, and why the rest was not."""

from __future__ import annotations

from pathlib import Path

import pytest

import hotloop
from hotloop.core.errors import SettingsError
from hotloop.doctor.script import ScriptPlan, record_script
from hotloop.doctor.trace import Trace

EXACT = ("control", "logging and printing off", "rendering off", "no_grad while acting", "fused optimizer")
NAMES = {
    *(*EXACT, "rows stored in one call", "evaluation off", "control (learning)", "no optimizer steps"),
    *("every 4th update", "every 16th update", "one update per env call"),
}
WALK = """
import sys, time
class Walk:
    def reset(self):
        return 0.0
    def step(self, action):
        time.sleep(0.0005)
        return 0.0, 1.0, False, False, {}
env = Walk()
env.reset()
while True:
    env.step(0)
    print("a line of many words")
    if "--slow" in sys.argv:
        time.sleep(0.002)
"""


def tried(trace: Trace) -> dict[str, str]:
    """Every experiment by its name, with the reason why it was not made."""
    return {one.name: "" for one in trace.experiments} | {one.name: one.reason for one in trace.untried}


def record(path: Path, text: str, seconds: float = 2.0, **plan: object) -> tuple[Trace, list[str]]:
    path.write_text(text)
    said: list[str] = []
    options = {"counting": False, "threads": False, "experiments": True, **plan}
    return record_script(path, (), ScriptPlan(seconds=seconds, **options), said.append), said  # type: ignore[arg-type]


def test_a_program_without_learning(tmp_path: Path) -> None:
    trace, said = record(tmp_path / "walk.py", WALK)
    found = tried(trace)
    assert found.keys() == NAMES
    assert found["control"] == ""
    assert found["logging and printing off"] == ""
    assert "no optimizer step was seen" in found["every 4th update"]
    assert "nothing was rendered" in found["rendering off"]
    assert [line for line in said if "trying: " in line][:1] == ["  trying: control"]
    assert "run 3 of 3: experiments that change learning, 2.5 s of the loop" in said
    assert any("in a copy of its folder" in note for note in trace.notes)


def test_what_was_tried_before_a_program_is_killed_is_told(tmp_path: Path) -> None:
    deadly = WALK.replace("while True:", "while True:\n    sys.argv += ['x']").replace(
        "    env.step(0)", "    env.step(0)\n    if len(sys.argv) > 3_500:\n        os.kill(os.getpid(), 9)"
    )
    trace, _ = record(tmp_path / "deadly.py", deadly.replace("import sys", "import os, sys"), experiment_seconds=20.0)
    assert "nothing was rendered" in tried(trace)["rendering off"]


def test_arguments_are_tried_in_processes_by_turns(tmp_path: Path) -> None:
    arms = ("slow=--slow",)
    trace, said = record(tmp_path / "walk.py", WALK, experiments=False, arms=arms, experiment_seconds=0.1)
    (one,) = trace.experiments
    assert (one.name, one.pairs, one.kind) == ("slow", 5, "changes learning")
    assert sum("arm slow, " in line for line in said) == 10


def test_mistakes_are_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "walk.py").write_text(WALK)
    with pytest.raises(SettingsError, match="NAME=ARGUMENTS"):
        hotloop.diagnose(tmp_path / "walk.py", arms=["--slow"])
    with pytest.raises(SettingsError, match="--quick"):
        hotloop.diagnose(tmp_path / "walk.py", quick=True, experiments=True)
    with pytest.raises(SettingsError, match="`--experiments` is for scripts"):
        hotloop.diagnose("cartpole-dqn", experiments=True)


INLINE = """
import random
import gymnasium, numpy, torch
from torch import nn
torch.set_num_threads(1)
envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1") for _ in range(2)])
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(q.parameters())

class Replay:
    def __init__(self):
        self.rows = []
    def add(self, obs, action, reward):
        self.rows.append((obs, action, reward))
    def sample(self, count):
        return [torch.tensor(numpy.array(column)) for column in zip(*random.sample(self.rows, count))]

replay = Replay()
obs, _ = envs.reset(seed=1)
for step in range(10_000_000):
    action = q(torch.tensor(obs)).argmax(dim=1).numpy()
    next_obs, reward, _, _, _ = envs.step(action)
    for place in range(2):
        replay.add(obs[place], action[place], reward[place])
    obs = next_obs
    print("env step", step)
    if len(replay.rows) >= 32:
        rows, actions, rewards = replay.sample(16)
        loss = ((q(rows).gather(1, actions[:, None])[:, 0] - rewards) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.slow
def test_a_program_with_its_update_in_the_loop(tmp_path: Path) -> None:
    trace, _ = record(tmp_path / "inline.py", INLINE, seconds=12.0)
    found = tried(trace)
    assert found.keys() == NAMES
    made = {one.name: one for one in trace.experiments}
    for name in (*EXACT[:2], *EXACT[3:], "rows stored in one call", "no optimizer steps", "every 4th update"):
        assert name in made, found[name]
    assert "losses are made all the same" in made["no optimizer steps"].what
    assert "updates per env call" in found["one update per env call"]


STABLE = """
import gymnasium, torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import EvalCallback
torch.set_num_threads(1)
evaluation = EvalCallback(gymnasium.make("CartPole-v1"), eval_freq=10, n_eval_episodes=1, verbose=0)
model = DQN("MlpPolicy", "CartPole-v1", learning_starts=100, train_freq=1, verbose=1, seed=1)
model.learn(10_000_000, log_interval=1, callback=evaluation)
"""


@pytest.mark.slow
def test_a_program_of_stable_baselines(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="the extra `sb3` is not installed")
    trace, _ = record(tmp_path / "stable.py", STABLE, seconds=16.0)
    found = tried(trace)
    assert found.keys() == NAMES
    made = {one.name: one for one in trace.experiments}
    for name in ("control", "logging and printing off", "fused optimizer", "evaluation off", "every 4th update"):
        assert name in made, found[name]
    assert "`DQN.train`" in made["no optimizer steps"].what
    assert found["rows stored in one call"].startswith("one call stores")
