"""No dead settings: changing any one of them changes the run, or is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

import hotloop
from hotloop.core.describe import describe
from hotloop.core.errors import HotloopError
from hotloop.core.settings import as_tree, merge
from hotloop.runs.events import read_events

# Bases on which every part is in use: schedules move, replay is prioritized, the network has atoms and noise,
# clipping clips.
DQN: dict[str, Any] = {
    "total_env_steps": 300,
    "learning_starts": 60,
    "batch_size": 8,
    "log_every": 100,
    "n_step": 2,
    "updates_per_env_step": 0.5,
    "env": {"id": "cartpole", "num_envs": 4, "max_episode_steps": 30},
    "network": {"hidden": [8], "noisy": True, "atoms": 5, "v_min": -1.0, "v_max": 30.0},
    "replay": {"buffer_size": 300, "prioritized": True, "beta_env_steps": 300},
    "exploration": {"kind": "linear", "start": 0.9, "end": 0.1, "over": 300},
    "target": {"every": 20, "tau": 0.5},
    "evaluation": {"every": 100, "episodes": 3, "final_episodes": 4},
    "checkpoint": {"every": 200},
    "optimizer": {"max_grad_norm": 0.05},
}
PPO: dict[str, Any] = {
    "total_env_steps": 256,
    "rollout_steps": 16,
    "batch_size": 16,
    "n_epochs": 2,
    "log_every": 64,
    "clip_range": 0.02,
    "value_clip": 0.1,
    "ent_coef": 0.01,
    "kl_target": 0.001,
    "env": {"id": "cartpole", "num_envs": 4, "max_episode_steps": 200},
    "network": {"hidden": [8]},
    "normalize": {"obs": True, "reward": True, "limit": 1.5},
    "evaluation": {"every": 64, "episodes": 3, "final_episodes": 4},
    "checkpoint": {"every": 128},
    "optimizer": {"learning_rate": 3e-3, "max_grad_norm": 0.05, "lr_schedule": {"kind": "constant", "start": 1.0}},
}
SAC: dict[str, Any] = {
    "total_env_steps": 160,
    "learning_starts": 40,
    "batch_size": 8,
    "log_every": 50,
    "n_step": 2,
    "updates_per_env_step": 0.5,
    "env": {"id": "Pendulum-v1", "num_envs": 2, "max_episode_steps": 30},
    "network": {"hidden": [8]},
    "replay": {"buffer_size": 200, "prioritized": True, "beta_env_steps": 160},
    "normalize": {"obs": True, "limit": 1.5},
    "evaluation": {"every": 60, "episodes": 3, "final_episodes": 4},
    "checkpoint": {"every": 80},
    "optimizer": {"max_grad_norm": 0.05},
}
LINEAR = {"kind": "linear", "start": 1.0, "end": 0.0, "over": 256, "unit": "env_steps"}
DECAY = {"kind": "decay", "start": 0.9, "end": 0.01, "factor": 0.9, "every": 50, "unit": "env_steps"}
BOARD = {"env": {"id": "snake", "options": {"observation": "grid", "board_size": 5}}}
TOPOLOGY = {
    "network": {"torso": "topology", "noisy": False, "topology": {"hidden": 8, "ring_degree": 4, "rewiring": 0.5}}
}
BRANCHES = {
    "env": {"id": "sfc", "num_envs": 4, "dict_obs": "keep", "max_episode_steps": 30},
    "network": {
        "torso": "branch_attention",
        "branches": {"vector_hidden": [8], "row_width": 4, "width": 8, "attention": 8},
    },
}
NUMBERS = {"env": {"id": "Pendulum-v1"}}
GRAPHS = {
    "env": {"id": "durotaxis", "max_episode_steps": 20, "options": {"max_nodes": 20}},
    "network": {"graph": {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "groups": 2}},
    "normalize": {"obs": False},
}
WEIGHTED = merge(GRAPHS, {"reward_parts": {"advantage": "weighted"}})

# A value unlike the default, and what must stand beside it for the setting to have a say.
Changes = dict[str, tuple[Any, dict[str, Any]]]


def nested(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def schedule_changes(table: str) -> Changes:
    """Of a schedule's every field; `table` may lie in another one."""
    return {
        f"{table}.kind": ("linear", nested(table, {"over": 200})),
        f"{table}.start": (0.5, {}),
        f"{table}.end": (0.5, nested(table, LINEAR)),
        f"{table}.over": (100, nested(table, LINEAR)),
        f"{table}.factor": (0.5, nested(table, DECAY)),
        f"{table}.every": (20, nested(table, DECAY)),
        f"{table}.unit": ("updates", nested(table, DECAY)),
    }


CHANGES: Changes = {
    "algorithm": ("ppo2", {}),
    "seed": (5, {}),
    "total_env_steps": (400, {}),
    "total_episodes": (4, {}),
    "gamma": (0.9, {}),
    "batch_size": (32, {}),
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
    "optimizer.learning_rate": (1e-2, {}),
    **schedule_changes("optimizer.lr_schedule"),
    "optimizer.beta1": (0.5, {}),
    "optimizer.beta2": (0.9, {}),
    "optimizer.eps": (1e-3, {}),
    "optimizer.max_grad_norm": (0.01, {}),
    "evaluation.episodes": (2, {}),
    "evaluation.final_episodes": (3, {}),
    "evaluation.max_episode_steps": (5, {}),
}
DQN_CHANGES: Changes = {
    "updates_per_env_step": (0.25, {}),
    "train_every": (40, {}),
    "updates_per_batch": (2, {"train_every": 40}),
    "learning_starts": (100, {}),
    "n_step": (3, {}),
    "double": (False, {}),
    "loss": ("mse", {"network": {"atoms": 1}}),
    "timeouts_are_terminal": (True, {}),
    "log_every": (50, {}),
    "network.activation": ("tanh", {}),
    "network.dueling": (True, {}),
    "network.noisy": (False, {}),
    "network.noisy_sigma": (0.3, {}),
    "network.atoms": (7, {}),
    "network.v_min": (-2.0, {}),
    "network.v_max": (20.0, {}),
    "network.topology.generator": ("dense", TOPOLOGY),
    "network.topology.hidden": (9, TOPOLOGY),
    "network.topology.ring_degree": (6, TOPOLOGY),
    "network.topology.rewiring": (0.8, TOPOLOGY),
    "network.topology.graph_seed": (3, TOPOLOGY),
    "network.topology.activation": ("tanh", TOPOLOGY),
    "network.topology.activate_outputs": (False, TOPOLOGY),
    "network.topology.learn_biases": (False, TOPOLOGY),
    "network.branches.vector_hidden": ([9], BRANCHES),
    "network.branches.row_width": (5, BRANCHES),
    "network.branches.width": (9, BRANCHES),
    "network.branches.attention": (9, BRANCHES),
    "replay.buffer_size": (100, {}),
    "replay.prioritized": (False, {}),
    "replay.alpha": (0.9, {}),
    "replay.beta_start": (0.1, {}),
    "replay.beta_end": (0.5, {}),
    "replay.beta_env_steps": (100, {}),
    "replay.priority_epsilon": (0.5, {}),
    "replay.combined": (True, {}),
    "replay.prioritized_batches": (2, {"train_every": 40}),
    "exploration.kind": ("constant", {}),
    "exploration.start": (0.5, {}),
    "exploration.end": (0.3, {}),
    "exploration.over": (100, {}),
    "exploration.factor": (0.5, {"exploration": DECAY}),
    "exploration.every": (20, {"exploration": DECAY}),
    "exploration.unit": ("updates", {}),
    "optimizer.accumulate": (2, {}),
    "target.tau": (1.0, {}),
    "target.every": (10, {}),
    "target.unit": ("env_steps", {}),
    "evaluation.every": (200, {}),
    "normalize.obs": (True, {}),
    "normalize.limit": (0.5, {"normalize": {"obs": True}}),
}
DETERMINISTIC: dict[str, Any] = {"policy": "deterministic", "smoothing": {"noise": 0.5, "clip": 0.5}}
SAC_CHANGES: Changes = CHANGES | {
    "policy": ("deterministic", {}),
    "policy_delay": (2, {}),
    "updates_per_env_step": (0.25, {}),
    "train_every": (40, {}),
    "updates_per_batch": (2, {"train_every": 40}),
    "learning_starts": (60, {}),
    "n_step": (3, {}),
    "timeouts_are_terminal": (True, {}),
    "log_every": (30, {}),
    "total_env_steps": (200, {}),
    "env.id": ("MountainCarContinuous-v0", {}),
    "env.num_envs": (1, {}),
    "env.options": ({"g": 5.0}, {}),
    "env.wrappers": (["ClipReward(-1, 0)"], {}),
    "network.torso": ("cnn", {}),
    "network.activation": ("tanh", {}),
    "network.critics": (1, {}),
    "replay.buffer_size": (50, {}),
    **{name: change for name, change in DQN_CHANGES.items() if name.startswith("replay.") and "capacity" not in name},
    "temperature.learned": (False, {}),
    "temperature.start": (0.1, {}),
    "temperature.entropy_per_number": (-5.0, {}),
    "smoothing.noise": (0.1, DETERMINISTIC),
    "smoothing.clip": (0.1, DETERMINISTIC),
    **{
        name: (value, merge(beside, {"policy": "deterministic"}))
        for name, (value, beside) in schedule_changes("exploration").items()
    },
    "normalize.obs": (False, {}),
    "normalize.limit": (0.5, {}),
    "optimizer.accumulate": (2, {}),
    "target.tau": (0.5, {}),
    "target.every": (10, {}),
    "target.unit": ("env_steps", {}),
    "evaluation.every": (80, {}),
}
del SAC_CHANGES["network.image_layout"]
PPO_CHANGES: Changes = {
    "rollout_steps": (8, {}),
    "n_epochs": (3, {}),
    "gae_lambda": (0.5, {}),
    "policy_loss": ("plain", {"n_epochs": 1}),
    "clip_range": (0.3, {}),
    **schedule_changes("clip_schedule"),
    "value_clip": (0.0, {}),
    "vf_coef": (0.1, {}),
    "ent_coef": (0.1, {}),
    "normalize_advantage": ("rollout", {}),
    "kl_stop": (1e-6, {}),
    "kl_target": (1e-6, {}),
    "log_every": (128, {}),
    "network.image_layout": ("channels-first", merge(BOARD, {"normalize": {"obs": False}})),
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
    "normalize.obs": (False, {}),
    "normalize.reward": (False, {}),
    "normalize.limit": (1.0, {}),
    "evaluation.every": (128, {}),
}

# Settings that decide how or where, not what; each has a test elsewhere, named here.
NOT_IN_THE_RESULT = {
    "run_dir": "tests/loop/test_whole_runs.py: every run there names one",
    "extended_from": "tests/loop/test_iterate.py: intervals of an extended run, and a new one that names it",
    "start_from": "tests/loop/test_iterate.py: a run starts from the best weights of another",
    "trust": "tests/cli/test_cli.py: a TOML file's own env",
    "on_nan": "tests/loop/test_numbers_guard.py: a run that goes back once",
    "checkpoint.every": "below",
    "checkpoint.keep": "below",
    "learner.lane": "tests/lanes",
    "learner.precision": "below; tests/lanes/test_policy_eager.py",
    "torch_threads": "below",
    "env.dict_obs": "tests/envs/test_env_spaces.py",
    "env.workers": "tests/envs/test_workers.py",
    "env.worker_timeout_seconds": "tests/envs/test_workers_lost.py",
    "env.worker_restarts": "tests/envs/test_workers_lost.py",
}
DQN_NOT_IN_THE_RESULT = {
    "learner.updates_per_call": "below",
    "replay.memory": "tests/replay/test_disk_replay.py, and below",
    "replay.folder": "tests/replay/test_disk_replay.py",
}


SAC_REFUSED = {"algorithm", "network.torso"}


class Family(NamedTuple):
    preset: str
    base: dict[str, Any]
    changes: Changes
    not_in_the_result: dict[str, str]
    refused: set[str]
    """Values above that are not valid; all others must be, so that a change is what is seen."""


FAMILIES = {
    "dqn": Family("cartpole-dqn", DQN, CHANGES | DQN_CHANGES, NOT_IN_THE_RESULT | DQN_NOT_IN_THE_RESULT, {"algorithm"}),
    "sac": Family("pendulum-sac", SAC, SAC_CHANGES, NOT_IN_THE_RESULT | DQN_NOT_IN_THE_RESULT, SAC_REFUSED),
    "ppo": Family("cartpole-ppo", PPO, CHANGES | PPO_CHANGES, NOT_IN_THE_RESULT, {"algorithm"}),
}
EACH_CHANGE = [(name, path) for name, family in FAMILIES.items() for path in family.changes]


class Outcomes:
    """What a run ended with; one that was trained before is not trained again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, dict[str, Any]] = {}

    def __call__(self, family: str, tree: dict[str, Any]) -> dict[str, Any]:
        key = json.dumps([family, tree], sort_keys=True)
        if key not in self._known:
            self._known[key] = outcome(family, tree, self._folder / f"base{len(self._known)}")
        return self._known[key]


@pytest.fixture(scope="module")
def base_outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return Outcomes(tmp_path_factory.mktemp("bases"))


def outcome(family: str, tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    result = hotloop.train(hotloop.preset(FAMILIES[family].preset, **merge(tree, {"run_dir": str(folder)})))
    events = [row["event"] for row in read_events(folder / "events.jsonl")]
    return {key: result[key] for key in ("digest", "evaluation", "final_evaluation")} | {"events": events}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_setting_is_listed_here(family: str) -> None:
    settings = hotloop.preset(FAMILIES[family].preset)
    paths = {row.path for row in describe(type(settings))}
    assert paths == FAMILIES[family].changes.keys() | FAMILIES[family].not_in_the_result.keys()


@pytest.mark.parametrize(("family", "path"), EACH_CHANGE)
def test_changing_a_setting_changes_something_or_raises(
    family: str, path: str, tmp_path: Path, base_outcome: Outcomes
) -> None:
    value, beside = FAMILIES[family].changes[path]
    base = merge(FAMILIES[family].base, beside)
    unchanged = base_outcome(family, base)
    try:
        changed = outcome(family, merge(base, nested(path, value)), tmp_path / "changed")
    except HotloopError:
        return
    assert changed != unchanged


@pytest.mark.parametrize(("family", "path"), EACH_CHANGE)
def test_only_what_should_be_refused_is_refused(family: str, path: str) -> None:
    preset, base, changes, _, refused = FAMILIES[family]
    value, beside = changes[path]
    if path not in refused:
        hotloop.preset(preset, **merge(merge(base, beside), nested(path, value)))


def test_checkpoints_come_as_often_and_are_kept_as_many_as_asked(tmp_path: Path) -> None:
    checkpoints = {"every": 50, "keep": 3}
    outcome("dqn", merge(DQN, {"checkpoint": checkpoints, "total_env_steps": 400}), tmp_path / "run")
    names = sorted(folder.name for folder in (tmp_path / "run" / "checkpoints").iterdir())
    assert [int(name) for name in names] == [300, 352, 400]  # four envs: the first multiple of 4 past 300 and 350


def test_updates_per_call_changes_how_many_are_made_at_once_and_nothing_else(tmp_path: Path) -> None:
    base = merge(DQN, {"train_every": 40, "replay": {"prioritized": False}, "network": {"noisy": False}})
    one = outcome("dqn", merge(base, {"learner": {"updates_per_call": 1}}), tmp_path / "one")
    many = outcome("dqn", merge(base, {"learner": {"updates_per_call": 20}}), tmp_path / "many")
    assert one == many


def test_half_precision_is_another_result_and_says_so(tmp_path: Path, base_outcome: Outcomes) -> None:
    half = outcome("dqn", merge(DQN, {"learner": {"precision": "bfloat16"}}), tmp_path / "half")
    assert half["digest"] != base_outcome("dqn", DQN)["digest"]
    assert "not exact" in (tmp_path / "half" / "lane.json").read_text()


def test_a_replay_on_disk_learns_the_same(tmp_path: Path, base_outcome: Outcomes) -> None:
    disk = outcome("dqn", merge(DQN, {"replay": {"memory": "disk"}}), tmp_path / "disk")
    assert disk == base_outcome("dqn", DQN)


def test_threads_are_set_as_asked(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    outcome("dqn", merge(DQN, {"torch_threads": 2}), tmp_path / "run")
    start = next(iter(read_events(tmp_path / "run" / "events.jsonl")))
    assert start["machine"]["torch_threads"] == 2
    assert torch.get_num_threads() == before


def test_the_base_is_built_from_valid_settings() -> None:
    assert as_tree(hotloop.preset("cartpole-dqn", **DQN))["n_step"] == 2
