"""Every preset loads strictly, and trains as far as a test can wait."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.core.errors import MissingExtraError, SettingsError
from hotloop.core.rng import derive_seed
from hotloop.core.types import ArraySpec
from hotloop.nets.build import build_q_network
from hotloop.presets.named import RENAMED, preset_names, preset_tree
from hotloop.presets.registry import ALGORITHMS
from tests.envs import planted_envs

SHORT = {
    "total_env_steps": 600,
    "evaluation": {"episodes": 2, "final_episodes": 2, "max_episode_steps": 500},
}


EXTRAS = {"box2d": ("Box2D", "lunarlander"), "mujoco": ("mujoco", "halfcheetah", "hopper")}
"""What some presets need beside the package itself: the extra, its module, and how those presets begin."""
SHORT_ON_GRAPHS = {
    "total_env_steps": 512,
    "rollout_steps": 8,
    "n_epochs": 2,
    "evaluation": {"episodes": 2, "final_episodes": 2, "max_episode_steps": 50},
}
"""Two rollouts of 32 envs: a row of a graph is as dear as hundreds of others."""


def _short(name: str) -> dict[str, Any]:
    """For DQN past the first n-step rows of all envs, with as many env steps after it."""
    tree = preset_tree(name)
    if tree["env"]["id"] == "durotaxis":
        return SHORT_ON_GRAPHS
    if tree.get("algorithm") == "ppo":
        return SHORT
    before_first_rows = (tree.get("n_step", 1) - 1) * tree["env"].get("num_envs", 1)
    if tree.get("algorithm") == "sac":
        return SHORT | {"total_env_steps": 260, "learning_starts": 200, "batch_size": 16}
    return SHORT | {
        "learning_starts": max(200, before_first_rows),
        "total_env_steps": max(600, 2 * before_first_rows),
    }


@pytest.mark.parametrize("name", [name for name in preset_names() if name not in ALGORITHMS])
def test_a_preset_trains(name: str, tmp_path: Path) -> None:
    settings = hotloop.preset(name, **_short(name), run_dir=str(tmp_path / "run"))
    missing = [(extra, package) for extra, (package, *ids) in EXTRAS.items() if name.startswith(tuple(ids))]
    if missing and importlib.util.find_spec(missing[0][1]) is None:
        with pytest.raises(MissingExtraError, match=rf"pip install .*\[{missing[0][0]}\]"):
            hotloop.train(settings)
    else:
        assert hotloop.train(settings)["updates"] > 0


@pytest.mark.parametrize(
    ("name", "env"),
    [
        ("dqn", "FrozenLake-v1"),
        ("dqn", f"{planted_envs.__file__}:Film"),  # images of bytes
        ("dqn", f"{planted_envs.__file__}:Nested"),
        ("ppo", "Pendulum-v1"),
        ("ppo", f"{planted_envs.__file__}:Film"),
        ("ppo", f"{planted_envs.__file__}:Cameras"),
        ("sac", "Pendulum-v1"),
    ],
)
def test_a_preset_for_any_env_trains_in_it(name: str, env: str, tmp_path: Path) -> None:
    small = {"rollout_steps": 64, "n_epochs": 1} if name == "ppo" else {"learning_starts": 200, "batch_size": 8}
    settings = hotloop.preset(name, **SHORT | small, env={"id": env}, run_dir=str(tmp_path / "run"))
    result = hotloop.train(settings, verbose=False)
    assert result["updates"] > 0
    agent = hotloop.load(result["run"])  # whose network is derived from the run's specs alone
    width = 256 if name == "sac" or env.endswith((":Film", ":Cameras")) else 64
    assert agent.settings.network.hidden == (width, width)


def test_a_preset_for_any_env_is_no_run_before_one_is_named(tmp_path: Path) -> None:
    settings = hotloop.preset("ppo", **SHORT, run_dir=str(tmp_path / "run"))
    with pytest.raises(SettingsError, match="for any env, and none is named"):
        hotloop.train(settings, verbose=False)
    assert not (tmp_path / "run").exists()
    assert hotloop.train(settings, env=planted_envs.Counter, verbose=False)["env_steps"] == 2_048  # one rollout


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_with_derived_settings_resumes_and_is_extended_with_the_same_ones(name: str, tmp_path: Path) -> None:
    small = {"rollout_steps": 32, "n_epochs": 1} if name == "ppo" else {"learning_starts": 200}
    tree = SHORT | small | {"total_env_steps": 1_024, "log_every": 512, "checkpoint": {"every": 256}}
    tree["env"] = {"id": "Pendulum-v1" if name == "sac" else "cartpole"}
    whole = hotloop.train(hotloop.preset(name, **tree, run_dir=str(tmp_path / "whole")), verbose=False)
    for row in hotloop.iterate(hotloop.preset(name, **tree, run_dir=str(tmp_path / "stopped"))):
        assert row.agent is not None
        break
    assert hotloop.resume(tmp_path / "stopped", verbose=False)["digest"] == whole["digest"]
    assert hotloop.resume(tmp_path / "whole", total_env_steps=2_048, verbose=False)["env_steps"] == 2_048
    settings = hotloop.load(tmp_path / "whole").settings
    derived = settings.replay.buffer_size if name == "sac" else settings.optimizer.lr_schedule.over
    assert derived == 1_024  # of the run that was begun


def test_cartpole_slm_makes_exactly_the_updates_of_the_measured_case() -> None:
    from hotloop.core.values import exact_fraction
    from hotloop.loop.cadence import UpdatePlan

    settings = hotloop.preset("cartpole-slm")
    plan = UpdatePlan(exact_fraction(settings.updates_per_env_step), settings.train_every, settings.learning_starts, 64)
    calls = [list(plan.due(frame - 1, frame)) for frame in range(1, settings.total_env_steps + 1)]
    events = [call for call in calls if call]
    assert len(events) == 2_492
    assert sum(map(sum, events)) == 79_744


@pytest.mark.parametrize(
    ("name", "nodes", "edges"),
    [
        ("topology-dqn", 70, 294),
        ("topology-original", 70, 294),
        ("topology-dqn-32", 38, 166),
        ("topology-dqn-32-degree-9", 38, 172),
        ("topology-dqn-128", 134, 1_345),
        ("topology-dqn-264", 270, 5_310),
    ],
)
def test_a_topology_preset_has_the_graph_of_its_table(name: str, nodes: int, edges: int) -> None:
    from hotloop.nets.topology.network import generate

    graph = generate(hotloop.preset(name).network, 4, 2)
    assert (len(graph.nodes), graph.num_edges) == (nodes, edges)


TOPOLOGY_AGENT = {
    "batch_size": 32,
    "loss": "mse",
    "gamma": 0.99,
    "updates_per_env_step": "1",
    "learning_starts": 1_000,
    "timeouts_are_terminal": True,
    "total_episodes": 500,
    "n_step": 1,
    "double": False,
    "optimizer.learning_rate": 1e-3,
    "optimizer.eps": 1e-8,
    "optimizer.max_grad_norm": 0.0,
    "replay.buffer_size": 10_000,
    "replay.prioritized": False,
    "exploration.start": 1.0,
    "exploration.end": 0.01,
    "exploration.factor": 0.995,
    "exploration.every": 1,
    "exploration.unit": "episodes",
    "target.every": 10,
    "target.unit": "episodes",
    "target.tau": 1.0,
    "env.id": "CartPole-v1",
    "env.num_envs": 1,
    "network.topology.learn_biases": False,
}
SNAKE_LOOP = {
    "batch_size": 64,
    "loss": "huber",
    "gamma": 0.99,
    "learning_starts": 1_000,
    "timeouts_are_terminal": True,
    "n_step": 1,
    "double": False,
    "optimizer.learning_rate": 1e-3,
    "optimizer.eps": 1e-8,
    "optimizer.max_grad_norm": 1.0,
    "replay.buffer_size": 100_000,
    "replay.prioritized": False,
    "exploration.start": 1.0,
    "exploration.end": 0.01,
    "exploration.factor": 0.995,
    "exploration.unit": "episodes",
    "target.unit": "env_steps",
    "target.tau": 1.0,
    "env.num_envs": 256,
    "network.hidden": (128, 128),
    "total_episodes": 5_000,
}
ORIGINALS = {
    "topology-original": TOPOLOGY_AGENT,
    "snake-original-64": SNAKE_LOOP | {"updates_per_env_step": "64/256", "target.every": 256_000},
    "snake-original-8": SNAKE_LOOP | {"updates_per_env_step": "8/256", "target.every": 32_000},
    "snake-original-1": SNAKE_LOOP | {"updates_per_env_step": "1/256", "target.every": 32_000},
}


@pytest.mark.parametrize("name", [name for name in preset_names() if "original" in name])
def test_a_preset_called_original_has_the_originals_settings(name: str) -> None:
    settings = hotloop.preset(name)
    for path, value in ORIGINALS[name].items():
        found = reduce(getattr, path.split("."), settings)
        assert (Fraction(found) == Fraction(value)) if path == "updates_per_env_step" else found == value, path


@pytest.mark.parametrize(("old", "new"), [(old, new) for old, (new, _) in RENAMED.items()])
def test_a_preset_that_was_renamed_says_so(old: str, new: str) -> None:
    with pytest.raises(SettingsError, match=f"is called `{new}`") as refused:
        hotloop.preset(old)
    page = RENAMED[old][1]
    assert page in refused.value.hint
    assert f"`{new}`" in (Path(__file__).parents[1] / page).read_text()


def test_biases_that_do_not_learn_stay_as_they_were_drawn(tmp_path: Path) -> None:
    import torch

    short = _short("topology-original")
    kept = hotloop.preset("topology-original", **short, run_dir=str(tmp_path / "a"))
    agents = [hotloop.load(hotloop.train(kept)["run"])]
    network = {"topology": {"learn_biases": True}}
    learning = hotloop.preset("topology-original", **short, network=network, run_dir=str(tmp_path / "b"))
    agents.append(hotloop.load(hotloop.train(learning)["run"]))
    first = build_q_network(kept.network, ArraySpec((4,)), 2, derive_seed(kept.seed, "init"))
    drawn = dict(first.named_parameters())
    (bias,) = [name for name in drawn if name.endswith("bias")]
    (weight,) = [name for name in drawn if name.endswith("weight")]
    fixed, moved = (dict(agent.network.named_parameters()) for agent in agents)
    assert torch.equal(fixed[bias], drawn[bias])
    assert not torch.equal(moved[bias], drawn[bias])
    assert not torch.equal(fixed[weight], drawn[weight])
