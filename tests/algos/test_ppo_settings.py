"""Every range that a PPO setting's text names is held; every bad combination is refused."""

import pytest

from hotloop.algos.ppo_settings import PPOSettings
from hotloop.core.errors import SettingsError
from hotloop.core.settings import build, leaf_types

NAN, INFINITE = float("nan"), float("inf")
OUT_OF_RANGE = {
    "algorithm": ["dqn", ""],
    "seed": [-1],
    "total_env_steps": [0, -1],
    "total_episodes": [-1],
    "rollout_steps": [0, -1],
    "epochs": [0],
    "batch_size": [0, 1000],
    "gamma": [-0.01, 1.01, NAN],
    "gae_lambda": [-0.01, 1.01, NAN],
    "policy_loss": ["kl"],
    "clip": [0.0, -0.2, NAN],
    "clip_schedule.kind": ["cosine"],
    "clip_schedule.start": [NAN, INFINITE],
    "clip_schedule.end": [NAN],
    "clip_schedule.over": [0],
    "clip_schedule.factor": [0.0, 1.1],
    "clip_schedule.every": [0],
    "clip_schedule.unit": ["steps"],
    "value_clip": [-0.1, NAN],
    "value_weight": [-0.1, INFINITE],
    "entropy_weight": [-0.1, NAN],
    "normalise_advantage": ["batch"],
    "kl_stop": [-0.1, NAN],
    "kl_target": [-0.1, NAN],
    "log_every": [0],
    "on_nan": ["ignore", ""],
    "threads": [0],
    "env.id": ["", " "],
    "env.num_envs": [0, -1],
    "env.max_episode_steps": [-1],
    "env.workers": [-1, 2_000_000],
    "env.worker_timeout_seconds": [0.0, -1.0],
    "env.worker_restarts": [-1],
    "env.dict_obs": ["drop"],
    "env.wrappers": [["os.getpid()"], ["RecordVideo('x')"]],
    "network.image_layout": ["hwc"],
    "network.torso": ["rnn", "topology"],
    "network.hidden": [[0], [64, 0], [-1]],
    "network.activation": ["gelu6"],
    "network.log_std": [-11.0, 3.0, NAN],
    "normalise.limit": [0.0, -1.0, NAN],
    "optimiser.lr": [0.0, -1e-3, NAN, INFINITE],
    "optimiser.lr_schedule.kind": ["cosine"],
    "optimiser.lr_schedule.start": [NAN, INFINITE],
    "optimiser.lr_schedule.end": [NAN],
    "optimiser.lr_schedule.over": [0],
    "optimiser.lr_schedule.factor": [0.0, 1.1],
    "optimiser.lr_schedule.every": [0],
    "optimiser.lr_schedule.unit": ["steps"],
    "optimiser.beta1": [-0.1, 1.0, 1.1],
    "optimiser.beta2": [-0.1, 1.0, 1.1],
    "optimiser.epsilon": [0.0, -1e-8, NAN],
    "optimiser.max_gradient_norm": [-1.0, NAN],
    "learner.lane": ["warp"],
    "learner.precision": ["float16"],
    "network.graph.width": [0, 127],
    "network.graph.heads": [0, 3],
    "network.graph.layers": [0],
    "network.graph.feed_forward": [0],
    "network.graph.groups": [0, 128],
    "reward_parts.value_weights": [[1.0, -1.0]],
    "reward_parts.advantage": ["some"],
    "reward_parts.advantage_weights": [[0.0, 0.0]],
    "evaluation.every": [-1],
    "evaluation.episodes": [-1],
    "evaluation.max_episode_steps": [0],
    "evaluation.final_episodes": [-1],
    "checkpoint.every": [-1],
    "checkpoint.keep": [0],
}
AT_THE_EDGE = {
    "total_env_steps": 1,
    "batch_size": 1024,
    "gamma": 1.0,
    "gae_lambda": 0.0,
    "value_weight": 0.0,
    "network.hidden": [],
    "network.log_std": 2.0,
    "optimiser.max_gradient_norm": 0.0,
    "checkpoint.keep": 1,
}
NO_RANGE = {"device", "run_dir", "trust", "env.batched", "env.options", "network.shared", "network.squashed"}
NO_RANGE |= {"normalise.obs", "normalise.reward"}


def nested(path: str, value: object) -> dict:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def test_every_setting_is_in_one_of_the_lists_of_this_file():
    assert set(leaf_types(PPOSettings)) == set(OUT_OF_RANGE) | NO_RANGE


@pytest.mark.parametrize(
    ("path", "value"), [(path, value) for path, values in OUT_OF_RANGE.items() for value in values]
)
def test_a_value_out_of_range_is_refused_and_its_setting_named(path, value):
    with pytest.raises(SettingsError) as caught:
        build(PPOSettings, nested(path, value))
    assert path.rsplit(".", 1)[-1] in str(caught.value)


@pytest.mark.parametrize(("path", "value"), AT_THE_EDGE.items())
def test_the_edges_of_a_range_belong_to_it(path, value):
    build(PPOSettings, nested(path, value))


def test_minibatches_must_divide_a_rollout():
    with pytest.raises(SettingsError, match="128 x 8 = 1024"):
        build(PPOSettings, {"batch_size": 100})
    assert build(PPOSettings, {"batch_size": 128}).updates_per_rollout == 4 * 8


def test_the_plain_policy_gradient_is_for_one_epoch():
    with pytest.raises(SettingsError, match="plain"):
        build(PPOSettings, {"policy_loss": "plain"})
    build(PPOSettings, {"policy_loss": "plain", "epochs": 1})


def test_derived_intervals():
    settings = build(PPOSettings, {"total_env_steps": 20_000, "env": {"num_envs": 1}, "batch_size": 64})
    assert (settings.evaluation_every, settings.checkpoint_every) == (1_000, 2_000)
