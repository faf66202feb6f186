"""No dead settings: changing any one of them changes the run, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import hotloop
from hotloop.core.errors import HotloopError
from hotloop.core.settings import as_tree, describe, flatten, merge
from hotloop.runs.events import read_events

# A base on which every part is in use: schedules move, replay is prioritised, the network has atoms and noise.
BASE: dict[str, Any] = {
    "total_env_steps": 300,
    "warmup_env_steps": 60,
    "batch_size": 8,
    "log_every": 100,
    "n_step": 2,
    "updates_per_env_step": 0.5,
    "env": {"id": "cartpole", "num_envs": 4, "max_episode_steps": 30},
    "network": {"hidden": [8], "noisy": True, "atoms": 5, "v_min": -1.0, "v_max": 30.0},
    "replay": {"capacity": 300, "prioritised": True, "beta_env_steps": 300},
    "exploration": {"kind": "linear", "start": 0.9, "end": 0.1, "over": 300},
    "target": {"every": 20, "tau": 0.5},
    "evaluation": {"every": 100, "episodes": 3, "final_episodes": 4},
    "checkpoint": {"every": 200},
    "optimiser": {"max_gradient_norm": 0.05},
}
DECAY = {"kind": "decay", "start": 0.9, "end": 0.01, "factor": 0.9, "every": 50, "unit": "env_steps"}
GRAPH = {"network": {"torso": "topology", "noisy": False, "topology": {"hidden": 8, "ring_degree": 4, "rewiring": 0.5}}}
BOARD = {"env": {"id": "snake", "options": {"observation": "grid", "board_size": 5}}}
BRANCHES = {
    "env": {"id": "sfc", "num_envs": 4, "dict_obs": "keep", "max_episode_steps": 30},
    "network": {
        "torso": "branch_attention",
        "branches": {"vector_hidden": [8], "row_width": 4, "width": 8, "attention": 8},
    },
}

# A value unlike the default, and what must stand beside it for the setting to have a say.
CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "algorithm": ("ppo2", {}),
    "seed": (5, {}),
    "total_env_steps": (400, {}),
    "total_episodes": (7, {}),
    "updates_per_env_step": (0.25, {}),
    "train_every": (40, {}),
    "updates_per_batch": (2, {}),
    "warmup_env_steps": (100, {}),
    "batch_size": (9, {}),
    "gamma": (0.9, {}),
    "n_step": (3, {}),
    "double": (False, {}),
    "loss": ("mse", {"network": {"atoms": 1}}),
    "timeouts_are_terminal": (True, {}),
    "log_every": (50, {}),
    "device": ("nowhere", {}),
    "env.id": ("CartPole-v1", {}),
    "env.num_envs": (3, {}),
    "env.max_episode_steps": (20, {}),
    "env.batched": (True, {}),
    "env.options": ({"sutton_barto_reward": True}, {}),
    "env.wrappers": (["ClipReward(0, 0.5)"], {"env": {"id": "CartPole-v1"}}),
    "network.torso": ("cnn", {}),
    "network.image_layout": ("channels-first", BOARD),
    "network.hidden": ([9], {}),
    "network.activation": ("tanh", {}),
    "network.dueling": (True, {}),
    "network.noisy": (False, {}),
    "network.noisy_sigma": (0.3, {}),
    "network.atoms": (7, {}),
    "network.v_min": (-2.0, {}),
    "network.v_max": (20.0, {}),
    "network.topology.generator": ("dense", GRAPH),
    "network.topology.hidden": (9, GRAPH),
    "network.topology.ring_degree": (6, GRAPH),
    "network.topology.rewiring": (0.8, GRAPH),
    "network.topology.graph_seed": (3, GRAPH),
    "network.topology.activation": ("tanh", GRAPH),
    "network.topology.activate_outputs": (False, GRAPH),
    "network.topology.learn_biases": (False, GRAPH),
    "network.branches.vector_hidden": ([9], BRANCHES),
    "network.branches.row_width": (5, BRANCHES),
    "network.branches.width": (9, BRANCHES),
    "network.branches.attention": (9, BRANCHES),
    "replay.capacity": (100, {}),
    "replay.prioritised": (False, {}),
    "replay.alpha": (0.9, {}),
    "replay.beta_start": (0.1, {}),
    "replay.beta_end": (0.5, {}),
    "replay.beta_env_steps": (100, {}),
    "replay.priority_epsilon": (0.5, {}),
    "replay.combined": (True, {}),
    "replay.prioritised_batches": (2, {"train_every": 40}),
    "exploration.kind": ("constant", {}),
    "exploration.start": (0.5, {}),
    "exploration.end": (0.3, {}),
    "exploration.over": (100, {}),
    "exploration.factor": (0.5, {"exploration": DECAY}),
    "exploration.every": (20, {"exploration": DECAY}),
    "exploration.unit": ("updates", {}),
    "optimiser.lr": (1e-2, {}),
    "optimiser.lr_schedule.kind": ("linear", {}),
    "optimiser.lr_schedule.start": (0.5, {}),
    "optimiser.lr_schedule.end": (0.5, {"optimiser": {"lr_schedule": {"kind": "linear", "over": 300}}}),
    "optimiser.lr_schedule.over": (100, {"optimiser": {"lr_schedule": {"kind": "linear", "over": 300}}}),
    "optimiser.lr_schedule.factor": (0.5, {"optimiser": {"lr_schedule": DECAY}}),
    "optimiser.lr_schedule.every": (20, {"optimiser": {"lr_schedule": DECAY}}),
    "optimiser.lr_schedule.unit": ("updates", {"optimiser": {"lr_schedule": DECAY}}),
    "optimiser.beta1": (0.5, {}),
    "optimiser.beta2": (0.9, {}),
    "optimiser.epsilon": (1e-3, {}),
    "optimiser.max_gradient_norm": (0.01, {}),
    "optimiser.accumulate": (2, {}),
    "target.tau": (1.0, {}),
    "target.every": (10, {}),
    "target.unit": ("env_steps", {}),
    "evaluation.every": (200, {}),
    "evaluation.episodes": (2, {}),
    "evaluation.final_episodes": (3, {}),
    "evaluation.max_episode_steps": (5, {}),
}

# Settings that decide how or where, not what; each has a test elsewhere, named here.
NOT_IN_THE_RESULT = {
    "run_dir": "test_off_policy: every run there names one",
    "trust": "test_cli: a TOML file's own env",
    "on_nan": "test_numbers_guard: a run that goes back once",
    "checkpoint.every": "below",
    "checkpoint.keep": "below",
    "learner.lane": "tests/lanes",
    "learner.precision": "below",
    "threads": "below",
    "env.dict_obs": "tests/envs/test_env_spaces.py",
    "env.workers": "tests/envs/test_workers.py",
    "env.worker_timeout_seconds": "tests/envs/test_workers_lost.py",
    "env.worker_restarts": "tests/envs/test_workers_lost.py",
    "learner.updates_per_call": "below",
    "replay.memory": "tests/replay/test_disk_replay.py, and below",
    "replay.folder": "tests/replay/test_disk_replay.py",
}


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {}


def outcome(folder: Path, tree: dict[str, Any]) -> dict[str, Any]:
    result = hotloop.train(hotloop.preset("cartpole-dqn", **merge(tree, {"run_dir": str(folder)})))
    events = [row["event"] for row in read_events(folder / "events.jsonl")]
    return {key: result[key] for key in ("digest", "evaluation", "final_evaluation")} | {"events": events}


def test_every_setting_is_listed_here() -> None:
    paths = {row.path for row in describe(hotloop.DQNSettings)}
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


def test_checkpoints_come_as_often_and_are_kept_as_many_as_asked(tmp_path: Path) -> None:
    checkpoints = {"every": 50, "keep": 3}
    outcome(tmp_path / "run", merge(BASE, {"checkpoint": checkpoints, "total_env_steps": 400}))
    names = sorted(folder.name for folder in (tmp_path / "run" / "checkpoints").iterdir())
    assert [int(name) for name in names] == [300, 352, 400]  # four envs: the first multiple of 4 past 300 and 350


def test_updates_per_call_changes_how_many_are_made_at_once_and_nothing_else(tmp_path: Path) -> None:
    base = merge(BASE, {"train_every": 40, "replay": {"prioritised": False}, "network": {"noisy": False}})
    one = outcome(tmp_path / "one", merge(base, {"learner": {"updates_per_call": 1}}))
    many = outcome(tmp_path / "many", merge(base, {"learner": {"updates_per_call": 20}}))
    assert one == many


def test_half_precision_is_another_result_and_says_so(tmp_path: Path) -> None:
    exact = outcome(tmp_path / "exact", BASE)
    half = outcome(tmp_path / "half", merge(BASE, {"learner": {"precision": "bfloat16"}}))
    assert half["digest"] != exact["digest"]
    assert "not exact" in (tmp_path / "half" / "lane.json").read_text()


def test_a_replay_on_disk_learns_the_same(tmp_path: Path) -> None:
    ram = outcome(tmp_path / "ram", BASE)
    disk = outcome(tmp_path / "disk", merge(BASE, {"replay": {"memory": "disk"}}))
    assert ram == disk


def test_threads_are_set_as_asked(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    outcome(tmp_path / "run", merge(BASE, {"threads": 2}))
    start = next(iter(read_events(tmp_path / "run" / "events.jsonl")))
    assert start["machine"]["torch_threads"] == 2
    assert torch.get_num_threads() == before


def test_the_base_is_built_from_valid_settings() -> None:
    assert as_tree(hotloop.preset("cartpole-dqn", **BASE))["n_step"] == 2
