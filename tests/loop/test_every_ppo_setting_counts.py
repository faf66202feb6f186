"""No dead settings: changing any one of PPO's changes the run, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.core.errors import HotloopError
from hotloop.core.settings import describe, flatten, merge
from hotloop.runs.events import read_events

BASE: dict[str, Any] = {
    "total_env_steps": 256,
    "rollout_steps": 16,
    "batch_size": 16,
    "epochs": 2,
    "log_every": 64,
    "clip": 0.02,
    "value_clip": 0.1,
    "entropy_weight": 0.01,
    "kl_target": 0.001,
    "env": {"id": "cartpole", "num_envs": 4, "max_episode_steps": 200},
    "network": {"hidden": [8]},
    "normalise": {"obs": True, "reward": True, "limit": 1.5},
    "evaluation": {"every": 64, "episodes": 3, "final_episodes": 4},
    "checkpoint": {"every": 128},
    "optimiser": {"lr": 3e-3, "max_gradient_norm": 0.05, "lr_schedule": {"kind": "constant", "start": 1.0}},
}
DECAY = {"kind": "decay", "start": 1.0, "end": 0.01, "factor": 0.9, "every": 50, "unit": "env_steps"}
LINEAR = {"kind": "linear", "start": 1.0, "end": 0.0, "over": 256, "unit": "env_steps"}
BOARD = {"env": {"id": "snake", "options": {"observation": "grid", "board_size": 5}}, "normalise": {"obs": False}}
NUMBERS = {"env": {"id": "Pendulum-v1"}}
GRAPHS = {
    "env": {"id": "durotaxis", "max_episode_steps": 20, "options": {"max_nodes": 20}},
    "network": {"graph": {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "groups": 2}},
    "normalise": {"obs": False},
}
WEIGHTED = merge(GRAPHS, {"reward_parts": {"advantage": "weighted"}})


def schedule_changes(table: str) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Of a schedule's every field; `table` may lie in another one."""

    def nested(value: dict[str, Any]) -> dict[str, Any]:
        for name in reversed(table.split(".")):
            value = {name: value}
        return value

    return {
        f"{table}.kind": ("linear", nested({"over": 200})),
        f"{table}.start": (0.5, {}),
        f"{table}.end": (0.5, nested(LINEAR)),
        f"{table}.over": (100, nested(LINEAR)),
        f"{table}.factor": (0.5, nested(DECAY)),
        f"{table}.every": (20, nested(DECAY)),
        f"{table}.unit": ("updates", nested(DECAY)),
    }


CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "algorithm": ("ppo2", {}),
    "seed": (5, {}),
    "total_env_steps": (400, {}),
    "total_episodes": (4, {}),
    "rollout_steps": (8, {}),
    "epochs": (3, {}),
    "batch_size": (32, {}),
    "gamma": (0.9, {}),
    "gae_lambda": (0.5, {}),
    "policy_loss": ("plain", {"epochs": 1}),
    "clip": (0.3, {}),
    **schedule_changes("clip_schedule"),
    "value_clip": (0.0, {}),
    "value_weight": (0.1, {}),
    "entropy_weight": (0.1, {}),
    "normalise_advantage": ("rollout", {}),
    "kl_stop": (1e-6, {}),
    "kl_target": (1e-6, {}),
    "log_every": (128, {}),
    "device": ("nowhere", {}),
    "env.id": ("CartPole-v1", {}),
    "env.num_envs": (2, {}),
    "env.max_episode_steps": (20, {}),
    "env.batched": (True, {}),
    "env.options": ({"sutton_barto_reward": True}, {}),
    "env.wrappers": (["ClipReward(0, 0.5)"], {"env": {"id": "CartPole-v1"}}),
    "network.torso": ("cnn", {}),
    "network.image_layout": ("channels-first", BOARD),
    "network.hidden": ([9], {}),
    "network.activation": ("relu", {}),
    "network.shared": (True, {}),
    "network.squashed": (True, NUMBERS),
    "network.log_std": (-1.0, NUMBERS),
    "network.graph.width": (16, GRAPHS),
    "network.graph.heads": (1, GRAPHS),
    "network.graph.layers": (2, GRAPHS),
    "network.graph.feed_forward": (4, GRAPHS),
    "network.graph.groups": (4, GRAPHS),
    "reward_parts.value_weights": ([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], GRAPHS),
    "reward_parts.advantage": ("weighted", GRAPHS),
    "reward_parts.advantage_weights": ([1.0, 1.0, 0.0, 0.0, 0.0, 0.0], WEIGHTED),
    "normalise.obs": (False, {}),
    "normalise.reward": (False, {}),
    "normalise.limit": (1.0, {}),
    "optimiser.lr": (1e-2, {}),
    **schedule_changes("optimiser.lr_schedule"),
    "optimiser.beta1": (0.5, {}),
    "optimiser.beta2": (0.9, {}),
    "optimiser.epsilon": (1e-3, {}),
    "optimiser.max_gradient_norm": (0.01, {}),
    "evaluation.every": (128, {}),
    "evaluation.episodes": (2, {}),
    "evaluation.final_episodes": (3, {}),
    "evaluation.max_episode_steps": (5, {}),
}
# Settings that decide how or where, not what; each has a test elsewhere, named here.
NOT_IN_THE_RESULT = {
    "run_dir": "test_on_policy: every run there names one",
    "trust": "test_cli: a TOML file's own env",
    "on_nan": "test_numbers_guard: a run that goes back once",
    "checkpoint.every": "test_every_setting_counts: the same code",
    "checkpoint.keep": "test_every_setting_counts: the same code",
    "learner.lane": "tests/lanes",
    "learner.precision": "tests/lanes/test_policy_eager.py",
    "threads": "test_every_setting_counts: the same code",
    "env.dict_obs": "tests/envs/test_env_spaces.py",
    "env.workers": "tests/envs/test_workers.py",
    "env.worker_timeout_seconds": "tests/envs/test_workers_lost.py",
    "env.worker_restarts": "tests/envs/test_workers_lost.py",
}


@pytest.fixture(scope="module")
def unchanged() -> dict[str, Any]:
    return {}


def outcome(folder: Path, tree: dict[str, Any]) -> dict[str, Any]:
    result = hotloop.train(hotloop.preset("cartpole-ppo", **merge(tree, {"run_dir": str(folder)})))
    events = [row["event"] for row in read_events(folder / "events.jsonl")]
    return {key: result[key] for key in ("digest", "evaluation", "final_evaluation")} | {"events": events}


def test_every_setting_is_listed_here() -> None:
    paths = {row.path for row in describe(hotloop.PPOSettings)}
    assert paths == CHANGES.keys() | NOT_IN_THE_RESULT.keys()


@pytest.mark.parametrize("path", CHANGES)
def test_changing_a_setting_changes_something_or_raises(path: str, tmp_path: Path, unchanged: dict[str, Any]) -> None:
    value, beside = CHANGES[path]
    base = merge(BASE, beside)
    key = repr(sorted(flatten(beside).items()))
    if key not in unchanged:
        unchanged[key] = outcome(tmp_path / "base", base)
    *folders, last = path.split(".")
    change: dict[str, Any] = {last: value}
    for folder in reversed(folders):
        change = {folder: change}
    try:
        changed = outcome(tmp_path / "changed", merge(base, change))
    except HotloopError:
        return
    assert changed != unchanged[key]


def test_only_what_should_be_refused_is_refused() -> None:
    """The other values of this file are valid, so that a change is what is seen."""
    refused = {"algorithm"}
    for path, (value, beside) in CHANGES.items():
        *folders, last = path.split(".")
        change: dict[str, Any] = {last: value}
        for folder in reversed(folders):
            change = {folder: change}
        if path not in refused:
            hotloop.preset("cartpole-ppo", **merge(merge(BASE, beside), change))
