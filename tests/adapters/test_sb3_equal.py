"""An accelerated model computes what Stable-Baselines3 computes: parameters, target, Adam's moments, log lines."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from sb3_pairs import Comparison, both, distance, fill_replay, fill_rollout, logged, optimizers, pair
from stable_baselines3 import DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

UPDATES = 500
TOLERANCE = 2e-5
MOST_PARTINGS = 2

Q_VARIANTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "target moves slowly": {"tau": 0.05, "target_update_interval": 1},
    "learning rate falls": {"learning_rate": lambda left: 1e-3 * left, "target_update_interval": 50},
    "always clipped": {"max_grad_norm": 0.05},
    "wide, tanh": {"policy_kwargs": {"net_arch": [256, 256], "activation_fn": nn.Tanh}},
    "other constants of Adam": {"policy_kwargs": {"optimizer_kwargs": {"betas": (0.8, 0.99), "eps": 1e-4}}},
}


def short_and_long(variants: dict[str, Any], short: int, quick: int) -> list[Any]:
    """Every variant for a few updates, the first `quick` of them over all 500, the others there only if asked for."""
    few = [pytest.param(name, short, id=f"{name}-{short}") for name in list(variants)[quick:]]
    marks = [() if i < quick else pytest.mark.slow for i in range(len(variants))]
    return few + [
        pytest.param(name, UPDATES, id=f"{name}-{UPDATES}", marks=mark)
        for name, mark in zip(variants, marks, strict=True)
    ]


@pytest.mark.parametrize(("variant", "updates"), short_and_long(Q_VARIANTS, short=40, quick=2))
def test_dqn_trains_equally(variant: str, updates: int) -> None:
    plain, fast = pair(DQN, "CartPole-v1", **({"learning_rate": 1e-3, "buffer_size": 2_000} | Q_VARIANTS[variant]))
    fill_replay(plain, fast)
    comparison = Comparison(plain, fast, TOLERANCE)

    def one_update(model: DQN) -> None:
        model.train(1, 64)
        model._on_step()

    for update in range(updates):
        for model in (plain, fast):
            model._current_progress_remaining = 1.0 - update / updates
        both(plain, fast, update, one_update)
        if update % 10 == 9:
            comparison.look()
    assert logged(fast) == pytest.approx(logged(plain), rel=1e-3, abs=1e-5)
    assert comparison.partings <= MOST_PARTINGS
    steps = {float(state["step"]) for state in fast.policy.optimizer.state_dict()["state"].values()}
    assert steps == {updates}


SQUASHED: dict[str, tuple[Any, int, dict[str, Any]]] = {  # with the updates of one call of `train`
    "SAC": (SAC, 1, {}),
    "TD3": (TD3, 1, {}),
    "SAC, fixed temperature": (SAC, 1, {"ent_coef": 0.2}),
    "SAC, eight updates a call, targets after every third": (SAC, 8, {"target_update_interval": 3}),
    "SAC, another entropy, learning rate falls": (
        SAC, 2, {"ent_coef": "auto_0.1", "target_entropy": -0.5, "learning_rate": lambda left: 1e-3 * left},
    ),
    "SAC, three critics, other layers for actor and critics, tanh": (
        SAC, 1, {"policy_kwargs": {"n_critics": 3, "net_arch": {"pi": [32], "qf": [48, 24]}, "activation_fn": nn.Tanh}},
    ),
    "TD3, five updates a call, the actor every third": (TD3, 5, {"policy_delay": 3, "tau": 0.05}),
    "TD3, no smoothing": (TD3, 1, {"target_policy_noise": 0.0}),
    "DDPG": (DDPG, 1, {}),
}  # fmt: skip


@pytest.mark.parametrize("variant", SQUASHED)
def test_sac_and_td3_train_equally_for_200_updates(variant: str) -> None:
    algorithm, at_once, options = SQUASHED[variant]
    small = {"buffer_size": 2_000, "learning_rate": 1e-3, "policy_kwargs": {"net_arch": [64, 64]}}
    plain, fast = pair(algorithm, lambda: TwoNumbers(), **(small | options))
    fill_replay(plain, fast)
    comparison = Comparison(plain, fast, TOLERANCE)
    for call in range(200 // at_once):
        for model in (plain, fast):
            model._current_progress_remaining = 1.0 - call * at_once / 200
        both(plain, fast, call, lambda model: model.train(at_once, 64))
        if call % 5 == 4:
            comparison.look()
    assert logged(fast) == pytest.approx(logged(plain), rel=1e-3, abs=1e-5)
    assert comparison.partings <= MOST_PARTINGS
    assert fast._n_updates == plain._n_updates == 200
    for one, other in zip(optimizers(plain), optimizers(fast), strict=True):
        assert [float(s["step"]) for s in one.state.values()] == [float(s["step"]) for s in other.state.values()]


class TwoNumbers(gymnasium.Env):
    """Observations of two axes, actions of two numbers with bounds of their own."""

    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (2, 3), np.float64)
    action_space = gymnasium.spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([1.0, 4.0], np.float32))

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.np_random.normal(size=(2, 3)), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        reward, ended = float(action[0] - action[1]), self.np_random.random(2) < 0.05
        return self.np_random.normal(size=(2, 3)), reward, bool(ended[0]), bool(ended[1]), {}


def env_of(algorithm: Any) -> str:
    return "CartPole-v1" if algorithm is DQN else "Pendulum-v1"


def several_envs(algorithm: Any) -> Any:
    return lambda: make_vec_env(env_of(algorithm), n_envs=3, seed=0)


def normalized(algorithm: Any) -> Any:
    return lambda: VecNormalize(make_vec_env(env_of(algorithm), n_envs=2, seed=0))


@pytest.mark.parametrize(
    ("env", "options"),
    [
        (several_envs, {}),
        (normalized, {}),
        (env_of, {"n_steps": 3}),
        (
            env_of,
            {"optimize_memory_usage": True, "replay_buffer_kwargs": {"handle_timeout_termination": False}},
        ),
    ],
    ids=["three envs", "VecNormalize", "n-step", "one array of observations"],
)
@pytest.mark.parametrize("algorithm", [DQN, SAC])
def test_any_buffer_gives_the_same_samples(algorithm: Any, env: Any, options: dict[str, Any]) -> None:
    if algorithm is SAC:
        options = options | {"policy_kwargs": {"net_arch": [16]}}
    plain, fast = pair(algorithm, env(algorithm), buffer_size=300, **options)
    fill_replay(plain, fast, rows=400)  # the ring comes round
    for seed in range(10):
        both(plain, fast, seed, lambda model: model.train(gradient_steps=4, batch_size=17))
    assert distance(plain, fast) < TOLERANCE


P_VARIANTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "values clipped, entropy": {"clip_range_vf": 0.1, "ent_coef": 0.01, "vf_coef": 0.7},
    "KL stops": {"target_kl": 0.0005, "learning_rate": 1e-3},
    "remainder, advantages as they are": {"batch_size": 48, "normalize_advantage": False},
    "schedules": {"learning_rate": lambda left: 1e-3 * left, "clip_range": lambda left: 0.3 * left},
    "relu, one layer": {"policy_kwargs": {"activation_fn": nn.ReLU, "net_arch": [32]}},
}


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
@pytest.mark.parametrize(("variant", "updates"), short_and_long(P_VARIANTS, short=60, quick=1))
def test_ppo_trains_equally(variant: str, updates: int, env: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the remainder
        plain, fast = pair(PPO, env, n_steps=128, **P_VARIANTS[variant])
    hold_ppo_equal(plain, fast, rollouts=updates // 20)


def hold_ppo_equal(plain: PPO, fast: PPO, rollouts: int) -> None:
    comparison = Comparison(plain, fast, TOLERANCE)
    for rollout in range(rollouts):
        for model in (plain, fast):
            model._current_progress_remaining = 1.0 - rollout / rollouts
        fill_rollout(plain, fast, rollout)
        both(plain, fast, rollout, lambda model: model.train())
        parted = comparison.partings
        comparison.look()
        if comparison.partings == parted:
            assert logged(fast) == pytest.approx(logged(plain), rel=1e-4, abs=1e-5)
    assert comparison.partings <= MOST_PARTINGS
    assert fast._n_updates == plain._n_updates
    assert all(state["step"] > 0 for state in fast.policy.optimizer.state_dict()["state"].values())


class Choices(gymnasium.Env):
    """Two choices at once, observations of two axes in double precision."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2, 3), np.float64)
    action_space = gymnasium.spaces.MultiDiscrete([3, 4])

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), float(action[0]), False, bool(self.np_random.random() < 0.05), {}


def test_ppo_of_several_choices_and_envs_and_other_observations() -> None:
    plain, fast = pair(PPO, lambda: make_vec_env(Choices, n_envs=2, seed=0), n_steps=32, batch_size=16, n_epochs=3)
    hold_ppo_equal(plain, fast, rollouts=4)


class Torso(BaseFeaturesExtractor):
    """Of policy and value together."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, 16)
        self.layers = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 16), nn.Tanh())

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.layers(obs)


@pytest.mark.parametrize("shared", [True, False])
def test_ppo_on_a_features_extractor_of_the_users(shared: bool) -> None:
    kwargs = {"features_extractor_class": Torso, "net_arch": [], "share_features_extractor": shared}
    plain, fast = pair(PPO, "Pendulum-v1", n_steps=64, policy_kwargs=kwargs)
    hold_ppo_equal(plain, fast, rollouts=4)


class Notes(BaseCallback):
    """What a callback sees."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[Any, ...]] = []
        self.calls: list[str] = []

    def _on_rollout_start(self) -> None:
        self.calls.append("start")

    def _on_rollout_end(self) -> None:
        self.calls.append("end")

    def _on_step(self) -> bool:
        taken = {name: self.locals[name] for name in ("actions", "new_obs", "rewards", "dones", "infos")}
        infos = [{k: v for k, v in info.items() if k != "episode"} for info in taken.pop("infos")]
        self.steps.append((sorted(self.locals), {k: np.array(v).tolist() for k, v in taken.items()}, repr(infos)))
        return True


NARROW = {"net_arch": [32, 32], "activation_fn": nn.Tanh}
NOISE = NormalActionNoise(np.zeros(1), np.full(1, 0.1))
WHOLE_RUNS: list[tuple[Any, str, dict[str, Any]]] = [
    (DQN, "CartPole-v1", {"learning_starts": 50, "train_freq": 1, "policy_kwargs": {"activation_fn": nn.Tanh}}),
    (DQN, "CartPole-v1", {"learning_starts": 50, "train_freq": (1, "episode"), "gradient_steps": -1}),
    (SAC, "Pendulum-v1", {"learning_starts": 50, "policy_kwargs": {**NARROW}}),
    (TD3, "Pendulum-v1", {"learning_starts": 50, "policy_kwargs": {**NARROW}, "action_noise": NOISE}),
    (PPO, "CartPole-v1", {"n_steps": 64}),
    (PPO, "Pendulum-v1", {"n_steps": 64}),
]


@pytest.mark.parametrize(("algorithm", "env", "options"), WHOLE_RUNS)
def test_a_whole_run_is_the_same_to_callbacks_and_logger(algorithm: Any, env: str, options: dict[str, Any]) -> None:
    notes, models = [Notes(), Notes()], pair(algorithm, env, **options)
    randoms = []
    for model, note in zip(models, notes, strict=True):
        np.random.seed(1)
        torch.manual_seed(1)
        model.learn(320, callback=note, log_interval=10_000)
        randoms.append((np.random.random(), float(torch.rand(1))))
    assert notes[0].calls == notes[1].calls
    assert [step[0] for step in notes[0].steps] == [step[0] for step in notes[1].steps]
    for theirs, ours in zip(notes[0].steps, notes[1].steps, strict=True):
        for name, value in theirs[1].items():
            np.testing.assert_allclose(ours[1][name], value, rtol=1e-3, atol=1e-4, err_msg=name)
    assert randoms[0] == randoms[1]
    assert models[0].logger.name_to_value.keys() == models[1].logger.name_to_value.keys()
    assert logged(models[1]) == pytest.approx(logged(models[0]), rel=1e-2, abs=1e-3)
    assert distance(*models) < 1e-3
