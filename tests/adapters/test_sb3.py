"""An accelerated model keeps its API and its files, says what it leaves alone, and can be restored."""

from __future__ import annotations

import copy
import doctest
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from sb3_pairs import SMALL, Twisted, both, distance, fill_replay, fill_rollout, pair
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv
from stable_baselines3.dqn.policies import DQNPolicy
from stable_baselines3.her import HerReplayBuffer
from stable_baselines3.sac.policies import Actor, SACPolicy
from stable_baselines3.td3.policies import TD3Policy
from torch import nn

import hotloop
from hotloop.adapters import sb3
from hotloop.adapters.sb3 import accelerate, report, restore
from hotloop.adapters.sb3.actor_critic import DRAWS
from hotloop.core.program import install_command


def make_dqn(**options: Any) -> DQN:
    return DQN("MlpPolicy", "CartPole-v1", **(SMALL | {"learning_starts": 50, "buffer_size": 500} | options))


def make_ppo(env: Any = "CartPole-v1", **options: Any) -> PPO:
    return PPO("MlpPolicy", env, **(SMALL | {"n_steps": 64} | options))


def make_squashed(algorithm: Any = SAC, policy: Any = "MlpPolicy", **options: Any) -> Any:
    small = {"learning_starts": 50, "buffer_size": 500, "batch_size": 16, "policy_kwargs": {"net_arch": [16, 16]}}
    return algorithm(policy, "Pendulum-v1", **(SMALL | small | options))


MAKERS = [make_dqn, make_ppo, lambda: make_ppo("Pendulum-v1"), make_squashed, lambda: make_squashed(TD3)]
NAMES = ["DQN", "PPO", "PPO of numbers", "SAC", "TD3"]


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
def test_two_lines_and_the_model_is_the_same_object(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    model = make()
    plain_class, policy, env = type(model), model.policy, model.get_env()
    assert accelerate(model) is model
    said = capsys.readouterr()
    assert not said.out
    assert said.err == f"hotloop: {plain_class.__name__}: {report(model)}\n"
    assert report(model).left == ()
    assert {"train", "act", "vector env"} < set(report(model).fast)
    assert isinstance(model, plain_class)
    assert type(model).__name__ == plain_class.__name__
    assert model.policy is policy
    assert model.get_env() is env
    assert model.learn(128) is model
    evaluate_policy(model, env, n_eval_episodes=1, warn=False)


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
def test_a_saved_model_is_plain_and_goes_on_equally(make: Any, tmp_path: Path) -> None:
    model = accelerate(make(), verbose=False).learn(192)
    model.save(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        for name in archive.namelist():
            assert b"hotloop" not in archive.read(name), name
    original = next(kind for kind in (DQN, PPO, SAC, TD3) if isinstance(model, kind))
    plain = original.load(tmp_path / "model", device="cpu")
    plain.set_logger(Logger(None, []))
    assert type(plain) is original
    assert distance(plain, model) == 0.0
    if not isinstance(model, PPO):
        fill_replay(plain, model, rows=100)
        both(plain, model, 1, lambda one: one.train(20, 16))
    else:
        fill_rollout(plain, model, 1)
        both(plain, model, 1, lambda one: one.train())
    assert 0.0 < distance(plain, model) < 2e-5


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
def test_nothing_of_ours_is_in_a_pickle(make: Any) -> None:
    model = accelerate(make(), verbose=False).learn(64)
    held = model.rollout_buffer if isinstance(model, PPO) else model.replay_buffer
    for thing in (model.policy, held):
        assert b"hotloop" not in pickle.dumps(thing)
    assert type(copy.deepcopy(model.get_env())) is DummyVecEnv


@pytest.mark.slow
def test_a_saved_model_loads_where_there_is_no_hotloop(tmp_path: Path) -> None:
    model = accelerate(make_dqn(), verbose=False).learn(100)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "replay")
    program = (
        "import sys; sys.modules['hotloop'] = None\n"
        "from stable_baselines3 import DQN\n"
        "model = DQN.load('model', device='cpu'); model.load_replay_buffer('replay')\n"
        "print(model.replay_buffer.pos, model.num_timesteps)\n"
    )
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert answer.stdout.split() == ["100", "100"]


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
def test_restore_gives_every_class_back(make: Any) -> None:
    model = make()
    things = [model, model.policy, model.get_env(), getattr(model, "rollout_buffer", None)]
    classes = [type(thing) for thing in things]
    accelerate(accelerate(model, verbose=False), verbose=False)
    model.learn(128)
    assert restore(model) is model
    assert [type(thing) for thing in things] == classes
    assert report(model).left == ("it was not accelerated",)
    assert not any("hotloop" in name for thing in things for name in getattr(thing, "__dict__", {}))
    model.learn(128)


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
def test_a_copy_of_an_accelerated_policy_is_a_plain_one(make: Any) -> None:
    model = accelerate(make(), verbose=False)
    twin = copy.deepcopy(model.policy)
    assert type(twin) in (DQNPolicy, ActorCriticPolicy, SACPolicy, TD3Policy)
    before = [parameter.clone() for parameter in twin.parameters()]
    model.learn(128)
    assert all(torch.equal(one, other) for one, other in zip(before, twin.parameters(), strict=True))


def test_parameters_that_were_set_anew_are_trained_on() -> None:
    plain, fast = pair(DQN, "CartPole-v1", learning_rate=1e-3)
    fill_replay(plain, fast)
    other = make_dqn(seed=9).get_parameters()
    for model in (plain, fast):
        model.train(3, 16)
        model.set_parameters(copy.deepcopy(other))
    both(plain, fast, 0, lambda model: model.train(5, 16))
    assert report(fast).fast
    assert distance(plain, fast) < 2e-5


def test_a_step_of_somebody_elses_on_the_same_optimizer_counts() -> None:
    plain, fast = pair(DQN, "CartPole-v1", learning_rate=1e-3)
    fill_replay(plain, fast)

    def mixed(model: DQN) -> None:
        model.train(3, 16)
        model.policy.optimizer.zero_grad()
        model.q_net(torch.ones(4, 4)).square().mean().backward()
        model.policy.optimizer.step()
        model.train(3, 16)

    both(plain, fast, 0, mixed)
    assert distance(plain, fast) < 2e-5


def test_a_model_that_became_another_is_left_to_stable_baselines3(capsys: pytest.CaptureFixture[str]) -> None:
    plain, fast = pair(DQN, "CartPole-v1")
    fill_replay(plain, fast)
    for model in (plain, fast):
        model.policy.optimizer = torch.optim.SGD(model.q_net.parameters(), lr=0.1)
    both(plain, fast, 0, lambda model: model.train(3, 16))
    for one, other in zip(plain.policy.parameters(), fast.policy.parameters(), strict=True):
        assert torch.equal(one, other)
    assert type(fast) is DQN
    assert "left to Stable-Baselines3 from here on: its optimizer is SGD, not Adam" in capsys.readouterr().err


class Layered(BaseFeaturesExtractor):
    def __init__(self, space: Any) -> None:
        super().__init__(space, 8)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8))

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.layers(obs)


class OwnTrain(DQN):
    def train(self, gradient_steps: int, batch_size: int = 100) -> None: ...


class OwnSAC(SAC):
    def train(self, gradient_steps: int, batch_size: int = 64) -> None: ...


class OwnSquashed(SACPolicy):
    def _predict(self, observation: Any, deterministic: bool = False) -> Any:
        return -super()._predict(observation, deterministic)


class Doubtful(Actor):
    def action_log_prob(self, obs: Any) -> Any:
        action, log_prob = super().action_log_prob(obs)
        return action, 2 * log_prob


class OwnActor(SACPolicy):
    def make_actor(self, features_extractor: Any = None) -> Any:
        kwargs = self._update_features_extractor(self.actor_kwargs, features_extractor)
        return Doubtful(**kwargs)


class OwnPolicy(ActorCriticPolicy):
    def evaluate_actions(self, obs: Any, actions: Any) -> Any:
        return super().evaluate_actions(obs, actions)


class OwnRollouts(RolloutBuffer): ...


class Pictures(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (3, 36, 36), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)


class Named(gymnasium.Env):
    observation_space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Box(-1.0, 1.0, (2,))})
    action_space = gymnasium.spaces.Discrete(2)


class Goals(gymnasium.Env):
    observation_space = gymnasium.spaces.Dict(
        {name: gymnasium.spaces.Box(-1.0, 1.0, (2,)) for name in ("observation", "achieved_goal", "desired_goal")}
    )
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return -np.abs(achieved - desired).sum(-1)


class Switches(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.MultiBinary(3)


SGD = {"optimizer_class": torch.optim.SGD}
LEFT: list[tuple[Any, str]] = [
    (lambda: A2C("MlpPolicy", "CartPole-v1", device="cpu"), "only DQN, PPO, SAC, TD3 and DDPG can be accelerated"),
    (lambda: make_squashed(use_sde=True), "it explores by gSDE, whose noise depends on the state"),
    (
        lambda: make_squashed(policy_kwargs={"features_extractor_class": Layered}),
        "its features extractor is a Layered",
    ),
    (lambda: make_squashed(policy_kwargs={"optimizer_kwargs": {"eps": 1e-5}}), "its optimizers have different const"),
    (lambda: make_squashed(policy=OwnSquashed), "its policy OwnSquashed has a `_predict` of its own"),
    (lambda: make_squashed(policy=OwnActor), "its Doubtful has a `action_log_prob` of its own"),
    (lambda: make_squashed(OwnSAC), "its class OwnSAC has a `train` of its own"),
    (
        lambda: SAC("MultiInputPolicy", Goals(), device="cpu", buffer_size=10, replay_buffer_class=HerReplayBuffer),
        "its observations are Dict, not Box",
    ),
    (lambda: make_dqn(policy_kwargs={"features_extractor_class": Layered}), "the network has layer normalization"),
    (lambda: make_dqn(policy_kwargs=SGD), "its optimizer is SGD, not Adam"),
    (lambda: make_dqn(policy_kwargs={"optimizer_kwargs": {"weight_decay": 0.1}}), "its optimizer has `weight_decay`"),
    (lambda: make_dqn(policy_kwargs={"optimizer_kwargs": {"amsgrad": True}}), "its optimizer has `amsgrad`"),
    (lambda: make_dqn(max_grad_norm=0.0), "its `max_grad_norm` is 0.0"),
    (lambda: OwnTrain("MlpPolicy", "CartPole-v1", device="cpu"), "its class OwnTrain has a `train` of its own"),
    (lambda: PPO("CnnPolicy", Pictures(), device="cpu"), "the network has a convolution"),
    (lambda: DQN("CnnPolicy", Pictures(), device="cpu", buffer_size=10), "the network has a convolution"),
    (lambda: PPO("MultiInputPolicy", Named(), device="cpu"), "its observations are Dict, not Box"),
    (lambda: PPO("MlpPolicy", Switches(), device="cpu"), "its actions are drawn from a BernoulliDistribution"),
    (lambda: make_ppo("Pendulum-v1", use_sde=True), "it explores by gSDE, whose noise depends on the state"),
    (lambda: make_ppo(rollout_buffer_class=OwnRollouts), "its rollouts are kept in a OwnRollouts"),
    (lambda: PPO(OwnPolicy, "CartPole-v1", device="cpu"), "its policy OwnPolicy has a `evaluate_actions` of its own"),
    (
        lambda: make_ppo(policy_kwargs={"net_arch": {"pi": [8], "vf": [16]}}),
        "the network has other hidden layers for its policy ([8]) than for its value ([16])",
    ),
]


@pytest.mark.parametrize(("make", "reason"), LEFT, ids=[reason for _, reason in LEFT])
def test_what_cannot_be_accelerated_is_left_alone_and_named(
    make: Any, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make()
    classes = [type(model), type(model.policy), type(model.get_env())]
    assert accelerate(model) is model
    assert [type(model), type(model.policy), type(model.get_env())] == classes
    assert report(model).fast == ()
    assert report(model).left[0].startswith(reason)
    assert f"hotloop: {classes[0].__name__} is left as it is: {reason}" in capsys.readouterr().err


def test_a_frozen_layer_and_uneven_steps_are_left_alone() -> None:
    model = make_dqn()
    model.q_net.q_net[0].weight.requires_grad_(False)
    assert report(accelerate(model, verbose=False)).left == ("its parameter `q_net.0.weight` is frozen",)
    model = make_dqn().learn(60)
    next(iter(model.policy.optimizer.state.values()))["step"].add_(1)
    reason = "its optimizer has not stepped all parameters equally often"
    assert report(accelerate(model, verbose=False)).left == (reason,)


def test_a_layer_frozen_or_replaced_later_is_left_to_torch(capsys: pytest.CaptureFixture[str]) -> None:
    plain, fast = pair(DQN, "CartPole-v1")
    fill_replay(plain, fast)
    for model in (plain, fast):
        model.q_net.q_net[0].weight.requires_grad_(False)
    before = fast.q_net.q_net[0].weight.clone()
    both(plain, fast, 0, lambda model: model.train(3, 16))
    assert torch.equal(before, fast.q_net.q_net[0].weight)
    assert "its parameter `q_net.0.weight` is frozen" in capsys.readouterr().err
    fast = accelerate(make_dqn(), verbose=False).learn(60)
    fast.q_net.q_net[0] = nn.Linear(4, 64)
    fast.train(1, 16)
    assert "its parameter `q_net.0.weight` is not in its optimizer" in capsys.readouterr().err


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(hotloop.HotloopError, match="`model` is a list"):
        accelerate([])  # type: ignore[type-var]


def test_parts_that_stay_as_they_are_are_named() -> None:
    model = make_dqn(n_steps=3)
    assert report(accelerate(model, verbose=False)).left == ("replay (a NStepReplayBuffer)",)
    env = SubprocVecEnv([lambda: gymnasium.make("CartPole-v1")], start_method="fork")
    try:
        assert report(accelerate(make_ppo(env), verbose=False)).left == ("vector env (a SubprocVecEnv)",)
    finally:
        env.close()


def test_the_vector_env_hands_out_what_it_did() -> None:
    """Also to somebody who keeps it: an env may go on changing what it said."""
    envs = [make_vec_env(lambda: Twisted(gymnasium.make("CartPole-v1")), n_envs=2, seed=4) for _ in range(2)]
    accelerate(make_ppo(envs[1]), verbose=False)
    assert type(envs[0]) is DummyVecEnv
    assert type(envs[1]) is not DummyVecEnv
    kept: list[list[Any]] = [[], []]
    generator = np.random.default_rng(0)
    for env in envs:
        env.seed(4)
        env.reset()
    for _ in range(80):
        actions = generator.integers(2, size=2)
        for env, rows in zip(envs, kept, strict=True):
            rows.append(env.step(actions))
    for theirs, ours in zip(*kept, strict=True):
        for one, other in zip(theirs[:3], ours[:3], strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        for one, other in zip(theirs[3], ours[3], strict=True):
            for info in (one, other):
                info.get("episode", {}).pop("t", None)  # a clock's
            assert one.keys() == other.keys()
            assert one["trail"] == other["trail"]
            np.testing.assert_array_equal(one["twice"], other["twice"])
            assert repr(one) == repr(other)


def test_replay_holds_what_it_held_and_stays_of_its_class() -> None:
    plain, fast = pair(DQN, lambda: make_vec_env("CartPole-v1", n_envs=2, seed=5), buffer_size=60)
    for model in (plain, fast):
        np.random.seed(0)
        model.action_space.seed(0)
        model.learn(100)
    assert type(fast.replay_buffer) is ReplayBuffer
    for name in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts"):
        np.testing.assert_array_equal(getattr(plain.replay_buffer, name), getattr(fast.replay_buffer, name), name)
    assert (plain.replay_buffer.pos, plain.replay_buffer.full) == (fast.replay_buffer.pos, fast.replay_buffer.full)


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
@pytest.mark.parametrize("rows", [(), (1,), (7,), (300,)])
def test_predict_answers_in_the_same_form(make: Any, rows: tuple[int, ...]) -> None:
    plain, fast = make(), accelerate(make(), verbose=False)
    obs = np.random.default_rng(0).normal(size=(*rows, *plain.observation_space.shape)).astype(np.float32)
    for deterministic in (True, False):
        answers = []
        for model in (plain, fast):
            torch.manual_seed(0)
            np.random.seed(0)
            model.exploration_rate = 0.0
            answers.append(model.predict(obs, deterministic=deterministic)[0])
        np.testing.assert_allclose(answers[0], answers[1], rtol=1e-4, atol=1e-5)
        assert answers[0].shape == answers[1].shape
        assert answers[0].dtype == answers[1].dtype
    with pytest.raises(ValueError, match="observation"):
        fast.predict(np.zeros((2, 3, 9), np.float32))


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_a_policy_draws_what_it_drew(env: str) -> None:
    assert len(DRAWS) == 2  # this version of torch draws as we do
    plain, fast = make_ppo(env), accelerate(make_ppo(env), verbose=False)
    obs = torch.randn(32, *plain.observation_space.shape)
    answers = []
    for model in (plain, fast):
        torch.manual_seed(0)
        with torch.no_grad():
            answers.append([*model.policy(obs), model.policy.predict_values(obs), torch.rand(2)])
    for one, other in zip(*answers, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert fast.policy(obs)[1].requires_grad  # where a gradient is wanted, torch answers


def test_a_number_that_is_not_finite_stops_before_it_does_harm() -> None:
    model = accelerate(make_dqn(), verbose=False).learn(60)
    before = model.policy.state_dict()
    model.replay_buffer.rewards[:] = np.nan
    with pytest.raises(hotloop.HotloopError, match="not finite"):
        model.train(1, 8)
    assert all(torch.isfinite(value).all() for value in before.values())
    model = accelerate(make_ppo(), verbose=False).learn(64)
    model.rollout_buffer.advantages[:] = np.nan
    with pytest.raises(hotloop.HotloopError, match="not finite"):
        model.train()


def test_without_stable_baselines3_the_extra_is_named() -> None:
    program = "import sys; sys.modules['stable_baselines3'] = None\nimport hotloop.adapters.sb3"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert install_command("sb3") in answer.stderr


def test_the_example_runs() -> None:
    (test,) = doctest.DocTestFinder().find(sb3.accelerate, "accelerate", globs={})
    said: list[str] = []
    assert doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)
