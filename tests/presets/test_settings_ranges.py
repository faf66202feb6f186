"""Every range that a setting's text names is held, in every family; every bad combination is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from hotloop.core.errors import SettingsError
from hotloop.core.settings import build, leaf_types
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.presets.ppo_settings import PPOSettings

NAN, INFINITE = float("nan"), float("inf")


def schedule_ranges(table: str) -> dict[str, list[Any]]:
    return {
        f"{table}.kind": ["cosine"],
        f"{table}.start": [NAN, INFINITE],
        f"{table}.end": [NAN],
        f"{table}.over": [0, "0%", "101%", "-5%", "nan%", "%"],
        f"{table}.factor": [0.0, 1.1],
        f"{table}.every": [0],
        f"{table}.unit": ["steps"],
    }


# What both families have.
OUT_OF_RANGE: dict[str, list[Any]] = {
    "seed": [-1],
    "total_env_steps": [0, -1],
    "total_episodes": [-1],
    "extended_from": [-1],
    "env.wrappers": [["os.getpid()"], ["RecordVideo('x')"]],
    "gamma": [-0.01, 1.01, NAN],
    "log_every": [0],
    "on_nan": ["ignore", ""],
    "torch_threads": [0],
    "env.id": ["", " "],
    "env.num_envs": [0, -1],
    "env.max_episode_steps": [-1],
    "env.workers": [-1, 2_000_000],
    "env.worker_timeout_seconds": [0.0, -1.0],
    "env.worker_restarts": [-1],
    "env.dict_obs": ["drop"],
    "network.image_layout": ["hwc"],
    "network.hidden": [[-1], [64, -1]],
    "network.activation": ["gelu6"],
    "optimizer.learning_rate": [0.0, -1e-3, NAN, INFINITE],
    **schedule_ranges("optimizer.lr_schedule"),
    "optimizer.beta1": [-0.1, 1.0, 1.1],
    "optimizer.beta2": [-0.1, 1.0, 1.1],
    "optimizer.eps": [0.0, -1e-8, NAN],
    "optimizer.max_grad_norm": [-1.0, NAN],
    "learner.lane": ["warp"],
    "learner.precision": ["float16"],
    "evaluation.every": [-1],
    "evaluation.episodes": [-1],
    "evaluation.max_episode_steps": [0],
    "evaluation.final_episodes": [-1],
    "checkpoint.every": [-1],
    "checkpoint.keep": [0],
}
AT_THE_EDGE: dict[str, Any] = {
    "total_env_steps": 1,
    "gamma": 1.0,
    "network.hidden": [64, 0],
    "optimizer.lr_schedule.over": "100%",
    "optimizer.beta1": 0.0,
    "optimizer.max_grad_norm": 0.0,
    "evaluation.every": 0,
    "checkpoint.keep": 1,
}
NO_RANGE = {"device", "run_dir", "start_from", "trust", "env.batched", "env.options"}

DQN_OUT_OF_RANGE: dict[str, list[Any]] = {
    "algorithm": ["ppo", ""],
    "normalize.limit": [0.0, -1.0, NAN],
    "updates_per_env_step": [-0.5, "-1/2"],
    "train_every": [0, -3],
    "updates_per_batch": [0],
    "learning_starts": [-1],
    "batch_size": [0, -1],
    "n_step": [0],
    "loss": ["l1"],
    "network.torso": ["rnn"],
    "network.noisy_sigma": [0.0, -1.0, NAN, INFINITE],
    "network.atoms": [0, -1],
    "network.v_min": [200.0, 300.0, NAN, -INFINITE],
    "network.v_max": [0.0, -1.0, NAN, INFINITE],
    "network.topology.generator": ["ring"],
    "network.topology.hidden": [0, 8, -1],
    "network.topology.ring_degree": [1, 64],
    "network.topology.rewiring": [-0.1, 1.1, NAN],
    "network.topology.graph_seed": [-1, 2**32],
    "network.topology.activation": ["relu"],
    "network.branches.vector_hidden": [[0], [-1]],
    "network.branches.row_width": [0, -1],
    "network.branches.width": [0],
    "network.branches.attention": [0],
    "replay.buffer_size": [-1],
    "replay.alpha": [-0.1, 1.1],
    "replay.beta_start": [-0.1, 1.1],
    "replay.beta_end": [-0.1, 1.1],
    "replay.beta_env_steps": [0],
    "replay.priority_epsilon": [0.0, -1.0, INFINITE],
    "replay.prioritized_batches": [0],
    "replay.memory": ["tape", ""],
    "replay.folder": ["/tmp"],  # without `memory = "disk"`
    **schedule_ranges("exploration"),
    "exploration.start": [-0.1, 1.1, NAN],
    "exploration.end": [-0.1, 1.1, NAN],
    "optimizer.accumulate": [0],
    "target.tau": [0.0, -0.1, 1.1],
    "target.every": [0],
    "target.unit": ["steps"],
    "learner.updates_per_call": [0],
}
DQN_AT_THE_EDGE: dict[str, Any] = {
    "updates_per_env_step": 0,
    "learning_starts": 0,
    "network.atoms": 1,
    "network.topology.rewiring": 1.0,
    "network.topology.graph_seed": 0,
    "exploration.start": 0.0,
    "exploration.end": 1.0,
    "target.tau": 1.0,
    "replay.alpha": 0.0,
    "replay.buffer_size": 0,
}
DQN_NO_RANGE = {"double", "timeouts_are_terminal", "network.dueling", "network.noisy", "replay.prioritized"}
DQN_NO_RANGE |= {
    "normalize.obs",
    "replay.combined",
    "network.topology.activate_outputs",
    "network.topology.learn_biases",
}

PPO_OUT_OF_RANGE: dict[str, list[Any]] = {
    "algorithm": ["dqn", ""],
    "rollout_steps": [0, -1],
    "n_epochs": [0],
    "batch_size": [0, -1, 1000],
    "gae_lambda": [-0.01, 1.01, NAN],
    "policy_loss": ["kl"],
    "clip_range": [0.0, -0.2, NAN],
    **schedule_ranges("clip_schedule"),
    "value_clip": [-0.1, NAN],
    "vf_coef": [-0.1, INFINITE],
    "ent_coef": [-0.1, NAN],
    "normalize_advantage": ["batch"],
    "kl_stop": [-0.1, NAN],
    "kl_target": [-0.1, NAN],
    "network.torso": ["rnn", "topology"],
    "network.log_std": [-11.0, 3.0, NAN],
    "network.graph.width": [0, 127],
    "network.graph.heads": [0, 3],
    "network.graph.layers": [0],
    "network.graph.feed_forward": [0],
    "network.graph.groups": [0, 128],
    "normalize.obs": ["maybe", 1],
    "normalize.limit": [0.0, -1.0, NAN],
    "reward_parts.value_weights": [[1.0, -1.0]],
    "reward_parts.advantage": ["some"],
    "reward_parts.advantage_weights": [[0.0, 0.0]],
}
PPO_AT_THE_EDGE: dict[str, Any] = {
    "batch_size": 1024,
    "gae_lambda": 0.0,
    "vf_coef": 0.0,
    "network.log_std": 2.0,
    "normalize.obs": "auto",
}
PPO_NO_RANGE = {"network.shared", "network.squashed", "normalize.reward"}


class Family(NamedTuple):
    settings: type
    out_of_range: dict[str, list[Any]]
    at_the_edge: dict[str, Any]
    no_range: set[str]


FAMILIES = {
    "dqn": Family(DQNSettings, OUT_OF_RANGE | DQN_OUT_OF_RANGE, AT_THE_EDGE | DQN_AT_THE_EDGE, NO_RANGE | DQN_NO_RANGE),
    "ppo": Family(PPOSettings, OUT_OF_RANGE | PPO_OUT_OF_RANGE, AT_THE_EDGE | PPO_AT_THE_EDGE, NO_RANGE | PPO_NO_RANGE),
}


def nested(path: str, value: object) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("family", FAMILIES)
def test_every_setting_is_in_one_of_the_lists_of_this_file(family: str) -> None:
    assert set(leaf_types(FAMILIES[family].settings)) == set(FAMILIES[family].out_of_range) | FAMILIES[family].no_range


@pytest.mark.parametrize(
    ("family", "path", "value"),
    [
        (name, path, value)
        for name in FAMILIES
        for path, values in FAMILIES[name].out_of_range.items()
        for value in values
    ],
)
def test_a_value_out_of_range_is_refused_and_its_setting_named(family: str, path: str, value: object) -> None:
    with pytest.raises(SettingsError) as caught:
        build(FAMILIES[family].settings, nested(path, value))
    assert path.rsplit(".", 1)[-1] in str(caught.value)


@pytest.mark.parametrize(
    ("family", "path", "value"),
    [(name, path, value) for name in FAMILIES for path, value in FAMILIES[name].at_the_edge.items()],
)
def test_the_edges_of_a_range_belong_to_it(family: str, path: str, value: object) -> None:
    build(FAMILIES[family].settings, nested(path, value))


@pytest.mark.parametrize(
    ("family", "tree", "evaluation", "checkpoint"),
    [
        ("dqn", {"total_env_steps": 20_000}, 1_000, 2_000),
        ("dqn", {"total_env_steps": 5}, 1, 1_000),  # at least 1,000 env steps of each env
        ("dqn", {"evaluation": {"every": 7}, "checkpoint": {"every": "2k"}}, 7, 2_000),
        ("ppo", {"total_env_steps": 20_000, "env": {"num_envs": 1}, "batch_size": 64}, 1_000, 2_000),
    ],
)
def test_derived_intervals(family: str, tree: dict[str, Any], evaluation: int, checkpoint: int) -> None:
    settings: Any = build(FAMILIES[family].settings, tree)
    assert (settings.evaluation_every, settings.checkpoint_every) == (evaluation, checkpoint)


def test_c51_has_a_loss_of_its_own() -> None:
    with pytest.raises(SettingsError, match="C51"):
        build(DQNSettings, {"loss": "mse", "network": {"atoms": 51}})


def test_a_graph_of_nodes_has_no_linear_layers_to_put_noise_on() -> None:
    with pytest.raises(SettingsError, match="noisy"):
        build(DQNSettings, {"network": {"torso": "topology", "noisy": True}})


def test_a_ratio_that_is_no_number_is_refused_by_the_class_itself() -> None:
    with pytest.raises(SettingsError):
        DQNSettings(updates_per_env_step="many")


def test_minibatches_must_divide_a_rollout() -> None:
    with pytest.raises(SettingsError, match="128 x 8 = 1024"):
        build(PPOSettings, {"batch_size": 100})
    assert build(PPOSettings, {"batch_size": 128}).updates_per_rollout == 4 * 8


def test_the_plain_policy_gradient_is_for_one_epoch() -> None:
    with pytest.raises(SettingsError, match="plain"):
        build(PPOSettings, {"policy_loss": "plain"})
    build(PPOSettings, {"policy_loss": "plain", "n_epochs": 1})
