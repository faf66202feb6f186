"""Whole actor-critic runs: they learn, what the result says, loaded agents, observations of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import EnvError
from hotloop.envs.registry import make_envs
from tests.loop.small_runs import GRAPHS, PER_NODE, Interrupt, WholeRuns, rows
from tests.loop.small_runs import small as small_run

IDENTITY = Path(__file__).parent / "identity_envs.py"


def small(tmp_path: Path, name: str = "run", **overrides: Any) -> hotloop.PPOSettings:
    return small_run("ppo", tmp_path, name, **overrides)


def identity(tmp_path: Path, name: str, **overrides: Any) -> hotloop.PPOSettings:
    env = {"id": f"{IDENTITY}:{name}", "num_envs": 8}
    tree = {
        "total_env_steps": 8_192,
        "rollout_steps": 32,
        "batch_size": 64,
        "n_epochs": 6,
        "gamma": 0.0,
        "optimizer": {"learning_rate": 5e-3, "lr_schedule": {"kind": "constant", "start": 1.0}},
        "evaluation": {"every": 4_096},
        "checkpoint": {"every": 4_096},
    }
    return small(tmp_path, name, env=env, **{**tree, **overrides})


@pytest.mark.parametrize("lane", ["eager", "auto"])
@pytest.mark.parametrize("name", ["Identity", "MaskedIdentity", "TwoQuestions"])
def test_the_right_answer_is_learned(tmp_path: Path, name: str, lane: str) -> None:
    result = hotloop.train(identity(tmp_path, name, learner={"lane": lane}))
    assert result["evaluation"]["mean_return"] == 10.0


@pytest.mark.parametrize("squashed", [False, True])
def test_numbers_are_learned(tmp_path: Path, squashed: bool) -> None:
    network = {"hidden": [16], "squashed": squashed, "log_std": -1.0}
    result = hotloop.train(identity(tmp_path, "Numbers", network=network, total_env_steps=16_384))
    assert result["evaluation"]["mean_return"] > -2.0  # within 0.2 of the number; guessing 0 is off by 1


@pytest.mark.parametrize("lane", ["eager", "native"])
def test_a_choice_and_a_number_are_learned_together(tmp_path: Path, lane: str) -> None:
    network = {"hidden": [16], "log_std": -1.0}
    settings = identity(tmp_path, "Both", network=network, total_env_steps=16_384, learner={"lane": lane})
    result = hotloop.train(settings)
    assert result["evaluation"]["mean_return"] > 8.0
    chosen, number = hotloop.load(result["run"]).act([0.0, 0.0, 1.0, 0.0])
    assert chosen == 3.0  # state 2, counted from 1
    assert abs(number - 1.0) < 0.4


def test_a2c_learns_the_right_answer_too(tmp_path: Path) -> None:
    settings = identity(tmp_path, "Identity", policy_loss="plain", n_epochs=1, batch_size=256, rollout_steps=32)
    assert hotloop.train(settings)["evaluation"]["mean_return"] > 9.0


def test_the_result_says_what_was_done(whole_run: WholeRuns) -> None:
    result = whole_run("ppo")
    assert result["env_steps"] == 1_280
    assert result["updates"] == 1_280 // 64 * 2 * 2  # rollouts x minibatches x epochs
    assert {"act", "env", "store", "advantage", "update", "log", "evaluate", "checkpoint"} <= set(result["phases"])
    logged = [row for row in rows(result["run"]) if row["event"] == "progress"]
    assert {"policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "gradient_norm", "lr"} <= set(logged[-1])


def test_a_run_ends_with_the_rollout_that_reaches_its_env_steps_or_episodes(tmp_path: Path) -> None:
    assert hotloop.train(small(tmp_path, "steps", total_env_steps=1_000))["env_steps"] == 1_024
    assert hotloop.train(small(tmp_path, "episodes", total_episodes=9))["env_steps"] < 1_280


@pytest.mark.parametrize("more", [GRAPHS, PER_NODE], ids=["numbers", "per node"])
def test_an_agent_on_graphs_is_loaded_and_acts_as_it_was_judged(whole_run: WholeRuns, more: dict[str, Any]) -> None:
    result = whole_run("ppo", **more)
    assert {"success_rate", "final_centroid", "mean_colony_size"} <= set(result["evaluation"])
    agent: Any = hotloop.load(result["run"])
    envs = make_envs(agent.settings.env, 3, np.arange(3, dtype=np.uint64))
    obs, _ = envs.reset()
    action = agent.act(obs)
    numbers = getattr(action, "numbers", action)
    assert numbers.shape[0] == 3
    assert agent.outputs(obs).value.shape == (3, 6)
    envs.step(action)
    with pytest.raises(EnvError, match="trained on graphs"):
        agent.act(np.zeros(4))
    assert hotloop.evaluate(result["run"], episodes=3)["episodes"] == 3


def test_a_loaded_agent_answers_as_its_env_counts(tmp_path: Path) -> None:
    result = hotloop.train(identity(tmp_path, "TwoQuestions"))
    agent = hotloop.load(result["run"])
    assert agent.act([0.0, 0.0, 1.0, 0.0]).tolist() == [1, 5]  # state 2: binary 10, the second digit from 5
    assert hotloop.evaluate(result["run"], episodes=3, trust=True)["mean_return"] == 10.0


def test_a_loaded_agent_of_numbers_stays_within_their_bounds(tmp_path: Path) -> None:
    settings = small(tmp_path, env={"id": "Pendulum-v1", "num_envs": 4}, total_env_steps=128)
    agent = hotloop.load(hotloop.train(settings)["run"])
    action = agent.act(np.full((5, 3), 100.0, np.float32))
    assert action.shape == (5, 1)
    assert (np.abs(action) <= 2.0).all()


def test_dqn_still_refuses_what_ppo_takes(tmp_path: Path) -> None:
    env = {"id": "Pendulum-v1", "num_envs": 1}
    with pytest.raises(EnvError, match="DQN needs Discrete"):
        hotloop.train(hotloop.preset("cartpole-dqn", env=env, run_dir=str(tmp_path / "dqn")))


PARTS = str(Path(__file__).parents[1] / "envs" / "planted_envs.py") + ":Parts"
OBSERVATIONS: dict[str, dict[str, Any]] = {
    "image": {"env": {"id": "snake", "num_envs": 4, "options": {"observation": "grid"}}, "network": {"hidden": [8]}},
    "parts": {"env": {"id": PARTS, "num_envs": 4, "dict_obs": "keep"}, "normalize": {"obs": True}},
}


@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_other_observations_train_resume_and_load(tmp_path: Path, kind: str) -> None:
    few = {"total_env_steps": 256, "checkpoint": {"every": 64}}
    few["evaluation"] = {"every": 128, "episodes": 2, "final_episodes": 2, "max_episode_steps": 20}
    whole = hotloop.train(small(tmp_path, "whole", **OBSERVATIONS[kind], **few))
    assert whole["lane"] == "eager"
    with pytest.raises(ZeroDivisionError):
        hotloop.train(small(tmp_path, "broken", **OBSERVATIONS[kind], **few), progress=Interrupt(2))
    assert hotloop.resume(tmp_path / "broken", trust=True)["digest"] == whole["digest"]
    assert hotloop.evaluate(whole["run"], episodes=2, trust=True)["episodes"] == 2


@pytest.mark.parametrize("name", ["NextStepVector", "SameStepMasks", "NextStepMasks"])
def test_vector_envs_of_every_kind_train(tmp_path: Path, name: str) -> None:
    planted = Path(__file__).parents[1] / "envs" / "planted_envs.py"
    result = hotloop.train(small(tmp_path, env={"id": f"{planted}:{name}", "num_envs": 4}))
    assert result["env_steps"] >= 1_280
