"""Whole runs on observations of every space, in wrappers, and with a torso of the user's own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector.utils import concatenate, create_empty_array

import hotloop
from hotloop.core import user_files
from hotloop.core.errors import EnvError, RunError, SettingsError
from hotloop.core.rng import derive_seeds
from hotloop.envs.registry import make_envs
from tests.envs import planted_envs
from tests.nets import planted_torsos

PLANTED, TORSOS = planted_envs.__file__, planted_torsos.__file__
SHORT: dict[str, Any] = {
    "total_env_steps": 256,
    "batch_size": 16,
    "network": {"hidden": [8]},
    "checkpoint": {"every": 64},
    "evaluation": {"every": 128, "episodes": 2, "final_episodes": 2, "max_episode_steps": 20},
}
OF = {"dqn": {"learning_starts": 64, "updates_per_env_step": "1/8"}, "ppo": {"rollout_steps": 16, "n_epochs": 1}}
STACKED = ["FrameStackObservation(stack_size=2)", "ClipReward(-1, 0.5)"]
TORSO = f"{TORSOS}:Plain"


def settings(folder: Path, algorithm: str, env: dict[str, Any], **more: Any) -> Any:
    whole_env = {"num_envs": 4, **env, "id": f"{PLANTED}:{env['id']}"}
    tree = {**SHORT, **OF[algorithm], **more, "env": whole_env, "run_dir": str(folder)}
    return hotloop.preset(f"cartpole-{algorithm}", **tree)


class Interrupt:
    """Breaks a run off between two checkpoints."""

    def show(self, session: Any, *_: Any) -> None:
        if session.counters.env_steps >= 192:
            raise ZeroDivisionError

    def say(self, text: str) -> None:
        pass


@pytest.mark.parametrize("algorithm", OF)
@pytest.mark.parametrize("name", ["Bits", "Dials", "Pair", "Nested", "Film", "Cameras"])
def test_every_space_trains_and_its_agent_takes_what_the_env_gives(tmp_path: Path, algorithm: str, name: str) -> None:
    result = hotloop.train(settings(tmp_path / "run", algorithm, {"id": name}))
    assert result["lane"] == ("eager" if name in ("Film", "Cameras") else "native")
    assert hotloop.evaluate(result["run"], episodes=2, trust=True)["episodes"] == 2
    agent, space = hotloop.load(result["run"]), getattr(planted_envs, name).observation_space
    space.seed(0)
    rows = [space.sample() for _ in range(3)]
    actions = agent.act(concatenate(space, rows, create_empty_array(space, 3)))  # as a vector env gives them
    assert actions.shape == (3,)
    for action, raw in zip(actions, rows, strict=True):
        assert agent.act(raw) == action


@pytest.mark.parametrize("algorithm", OF)
def test_what_an_env_gives_and_what_is_made_of_it_are_the_same_to_an_agent(tmp_path: Path, algorithm: str) -> None:
    made = settings(tmp_path / "run", algorithm, {"id": "Nested"})
    agent = hotloop.load(hotloop.train(made)["run"])
    env, encoded = planted_envs.Nested(), make_envs(made.env, 1, derive_seeds(0, 1, "env"))
    raw, _ = env.reset(seed=int(derive_seeds(0, 1, "env")[0]) % 2**31)
    obs, _ = encoded.reset()
    assert agent.act(raw) == agent.act(obs[0]) == agent.act(obs)[0]
    with pytest.raises(EnvError, match=r"without part `arm.joints.1`"):
        agent.act({**raw, "arm": {**raw["arm"], "joints": raw["arm"]["joints"][:1]}})


@pytest.mark.parametrize(("algorithm", "name"), [("dqn", "Nested"), ("ppo", "Cameras")])
def test_a_wrapped_env_of_many_parts_resumes_exactly(tmp_path: Path, algorithm: str, name: str) -> None:
    env = {"id": name, "wrappers": ["ClipReward(-1, 0.5)"] if name == "Cameras" else STACKED, "dict_obs": "keep"}
    whole = hotloop.train(settings(tmp_path / "whole", algorithm, env, log_every=64))
    with pytest.raises(ZeroDivisionError):
        hotloop.train(settings(tmp_path / "broken", algorithm, env, log_every=64), progress=Interrupt())
    assert hotloop.resume(tmp_path / "broken", trust=True)["digest"] == whole["digest"]
    unwrapped = hotloop.train(settings(tmp_path / "bare", algorithm, env | {"wrappers": []}, log_every=64))
    assert unwrapped["digest"] != whole["digest"]


def test_stacked_frames_are_channels_of_one_image(tmp_path: Path) -> None:
    env = {"id": "Film", "wrappers": ["FrameStackObservation(4)", "ReshapeObservation((4, 12, 10))"]}
    agent = hotloop.load(hotloop.train(settings(tmp_path / "run", "dqn", env))["run"])
    assert agent.network.torso.convolutions[0].in_channels == 4
    assert agent.act(np.zeros((4, 12, 10), np.uint8)) in (0, 1)


@pytest.mark.parametrize("algorithm", OF)
def test_a_torso_of_the_users_own_needs_trust_and_resumes_exactly(tmp_path: Path, algorithm: str) -> None:
    own: dict[str, Any] = {"network": {"torso": TORSO}, "log_every": 64}
    whole = hotloop.train(settings(tmp_path / "whole", algorithm, {"id": "Bits"}, **own))
    assert "network is not" in (tmp_path / "whole" / "lane.json").read_text()
    with pytest.raises(ZeroDivisionError):
        hotloop.train(settings(tmp_path / "broken", algorithm, {"id": "Bits"}, **own), progress=Interrupt())
    for untrusting in (hotloop.resume, hotloop.load, lambda run: hotloop.evaluate(run, policy="", episodes=1)):
        with pytest.raises(EnvError, match="runs code from outside hotloop"):
            untrusting(tmp_path / "broken")
    assert hotloop.resume(tmp_path / "broken", trust=True)["digest"] == whole["digest"]
    agent = hotloop.load(whole["run"], trust=True)
    assert agent.act(np.array([1, 0, 1, 0], np.int8)) in (0, 1)


def test_a_torso_that_was_changed_is_refused_by_resume_and_told_by_load(
    tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    source = tmp_path / "mine.py"
    shutil.copy(TORSOS, source)
    own: dict[str, Any] = {"network": {"torso": f"{source}:Plain"}, "log_every": 64}
    with pytest.raises(ZeroDivisionError):
        hotloop.train(settings(tmp_path / "run", "dqn", {"id": "Bits"}, **own), progress=Interrupt())
    source.write_text(source.read_text() + "# another one\n")
    hotloop.load(tmp_path / "run", trust=True)
    assert "was changed" not in capsys.readouterr().err  # this process has run what it was
    monkeypatch.setattr(user_files, "_digests_as_run", {})  # and the next one
    with pytest.raises(RunError, match="mine.py, the file of `network.torso`, was changed since") as caught:
        hotloop.resume(tmp_path / "run", trust=True)
    assert "--accept-changes" in caught.value.hint
    hotloop.load(tmp_path / "run", trust=True)
    assert "was changed since the checkpoint was saved" in capsys.readouterr().err
    assert hotloop.resume(tmp_path / "run", trust=True, accept_changes=True)["env_steps"] == 256


def test_a_torso_over_graphs_is_refused(tmp_path: Path) -> None:
    tree = {"env": {"id": "durotaxis", "num_envs": 2}, "network": {"torso": TORSO}, "run_dir": str(tmp_path / "run")}
    with pytest.raises(SettingsError, match="the observation is a graph"):
        hotloop.train(hotloop.preset("cartpole-ppo", **tree))
