"""Every range that a setting's text names is held; every bad combination is refused."""

import pytest

from hotloop.algos.dqn_settings import DQNSettings
from hotloop.core.errors import SettingsError
from hotloop.core.settings import build, leaf_types

OUT_OF_RANGE = {
    "algorithm": ["ppo", ""],
    "seed": [-1],
    "total_env_steps": [0, -1],
    "total_episodes": [-1],
    "updates_per_env_step": [-0.5, "-1/2"],
    "train_every": [0, -3],
    "updates_per_batch": [0],
    "warmup_env_steps": [-1],
    "batch_size": [0, -1],
    "gamma": [-0.01, 1.01, float("nan")],
    "n_step": [0],
    "loss": ["l1"],
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
    "network.torso": ["rnn"],
    "network.hidden": [[0], [64, 0], [-1]],
    "network.activation": ["gelu6"],
    "network.noisy_sigma": [0.0, -1.0, float("nan"), float("inf")],
    "network.atoms": [0, -1],
    "network.v_min": [200.0, 300.0, float("nan"), float("-inf")],
    "network.v_max": [0.0, -1.0, float("nan"), float("inf")],
    "network.topology.generator": ["ring"],
    "network.topology.hidden": [0, 8, -1],
    "network.topology.ring_degree": [1, 64],
    "network.topology.rewiring": [-0.1, 1.1, float("nan")],
    "network.topology.graph_seed": [-1, 2**32],
    "network.topology.activation": ["relu"],
    "network.branches.vector_hidden": [[0], [-1]],
    "network.branches.row_width": [0, -1],
    "network.branches.width": [0],
    "network.branches.attention": [0],
    "replay.capacity": [0],
    "replay.alpha": [-0.1, 1.1],
    "replay.beta_start": [-0.1, 1.1],
    "replay.beta_end": [-0.1, 1.1],
    "replay.beta_env_steps": [0],
    "replay.priority_epsilon": [0.0, -1.0, float("inf")],
    "replay.prioritised_batches": [0],
    "replay.memory": ["tape", ""],
    "replay.folder": ["/tmp"],  # without `memory = "disk"`
    "exploration.kind": ["cosine"],
    "exploration.start": [-0.1, 1.1, float("nan")],
    "exploration.end": [-0.1, 1.1, float("nan")],
    "exploration.over": [0],
    "exploration.factor": [0.0, 1.1],
    "exploration.every": [0],
    "exploration.unit": ["steps"],
    "optimiser.lr": [0.0, -1e-3, float("nan"), float("inf")],
    "optimiser.lr_schedule.over": [0],
    "optimiser.lr_schedule.factor": [0.0, 1.1],
    "optimiser.lr_schedule.every": [0],
    "optimiser.lr_schedule.start": [float("nan"), float("inf")],
    "optimiser.lr_schedule.end": [float("nan")],
    "optimiser.beta1": [-0.1, 1.0, 1.1],
    "optimiser.beta2": [-0.1, 1.0, 1.1],
    "optimiser.epsilon": [0.0, -1e-8, float("nan")],
    "optimiser.max_gradient_norm": [-1.0, float("nan")],
    "optimiser.accumulate": [0],
    "target.tau": [0.0, -0.1, 1.1],
    "target.every": [0],
    "target.unit": ["steps"],
    "learner.lane": ["warp"],
    "learner.precision": ["float16"],
    "learner.updates_per_call": [0],
    "evaluation.every": [-1],
    "evaluation.episodes": [-1],
    "evaluation.max_episode_steps": [0],
    "evaluation.final_episodes": [-1],
    "checkpoint.every": [-1],
    "checkpoint.keep": [0],
}
AT_THE_EDGE = {
    "total_env_steps": 1,
    "updates_per_env_step": 0,
    "warmup_env_steps": 0,
    "gamma": 1.0,
    "network.hidden": [],
    "network.atoms": 1,
    "network.topology.rewiring": 1.0,
    "network.topology.graph_seed": 0,
    "exploration.start": 0.0,
    "exploration.end": 1.0,
    "optimiser.beta1": 0.0,
    "optimiser.max_gradient_norm": 0.0,
    "target.tau": 1.0,
    "evaluation.every": 0,
    "checkpoint.keep": 1,
    "replay.alpha": 0.0,
}
NO_RANGE = {"double", "timeouts_are_terminal", "device", "run_dir", "trust", "env.batched", "env.options"}
NO_RANGE |= {
    "network.dueling",
    "network.noisy",
    "network.topology.activate_outputs",
    "network.topology.learn_biases",
    "replay.prioritised",
    "replay.combined",
}
NO_RANGE |= {"optimiser.lr_schedule.kind", "optimiser.lr_schedule.unit"}


def nested(path: str, value: object) -> dict:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def test_every_setting_is_in_one_of_the_lists_of_this_file():
    assert set(leaf_types(DQNSettings)) == set(OUT_OF_RANGE) | NO_RANGE


@pytest.mark.parametrize(
    ("path", "value"), [(path, value) for path, values in OUT_OF_RANGE.items() for value in values]
)
def test_a_value_out_of_range_is_refused_and_its_setting_named(path, value):
    with pytest.raises(SettingsError) as caught:
        build(DQNSettings, nested(path, value))
    assert path.rsplit(".", 1)[-1] in str(caught.value)


@pytest.mark.parametrize(("path", "value"), AT_THE_EDGE.items())
def test_the_edges_of_a_range_belong_to_it(path, value):
    build(DQNSettings, nested(path, value))


def test_c51_has_a_loss_of_its_own():
    with pytest.raises(SettingsError, match="C51"):
        build(DQNSettings, {"loss": "mse", "network": {"atoms": 51}})


def test_a_graph_of_nodes_has_no_linear_layers_to_put_noise_on():
    with pytest.raises(SettingsError, match="noisy"):
        build(DQNSettings, {"network": {"torso": "topology", "noisy": True}})


@pytest.mark.parametrize(
    ("tree", "evaluation", "checkpoint"),
    [
        ({"total_env_steps": 20_000}, 1_000, 2_000),
        ({"total_env_steps": 5}, 1, 1_000),  # at least 1,000 env steps of each env
        ({"evaluation": {"every": 7}, "checkpoint": {"every": "2k"}}, 7, 2_000),
    ],
)
def test_derived_intervals(tree, evaluation, checkpoint):
    settings = build(DQNSettings, tree)
    assert (settings.evaluation_every, settings.checkpoint_every) == (evaluation, checkpoint)


def test_a_ratio_that_is_no_number_is_refused_by_the_class_itself():
    with pytest.raises(SettingsError):
        DQNSettings(updates_per_env_step="many")
