"""Two models of Stable-Baselines3 from the same seed, one of them accelerated, and what they have in common."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO, SAC, TD3
from stable_baselines3.common.logger import Logger

from hotloop.adapters.sb3 import accelerate, report

SMALL = {"device": "cpu", "seed": 3, "verbose": 0}


def pair(algorithm: Any, env: Any, **options: Any) -> tuple[Any, Any]:
    """Plain and accelerated; `env` is an id or makes one."""
    makers = [env if isinstance(env, str) else env() for _ in range(2)]
    plain, fast = (algorithm("MlpPolicy", made, **(SMALL | options)) for made in makers)
    accelerate(fast, verbose=False)
    assert report(fast).fast, report(fast)
    for model in (plain, fast):
        model.set_logger(Logger(None, []))
    return plain, fast


def fill_replay(plain: Any, fast: Any, rows: int = 600) -> None:
    """Random transitions, time-outs among them, the same in both buffers."""
    generator, buffer = np.random.default_rng(0), plain.replay_buffer
    shape = (buffer.n_envs, *buffer.obs_shape)
    for _ in range(rows):
        obs, next_obs = generator.normal(size=(2, *shape))
        action = _random_action(generator, plain.action_space, buffer.n_envs)
        done = generator.random(buffer.n_envs) < 0.1
        infos = [{"TimeLimit.truncated": bool(one and generator.random() < 0.5)} for one in done]
        buffer.add(obs, next_obs, action, generator.normal(size=buffer.n_envs), done, infos)
    fast.replay_buffer = copy.deepcopy(buffer)


def _random_action(generator: np.random.Generator, space: Any, num_envs: int) -> np.ndarray:
    if isinstance(space, gymnasium.spaces.Discrete):
        return generator.integers(space.n, size=(num_envs,))
    return np.tanh(generator.normal(size=(num_envs, *space.shape))).astype(np.float32)


def fill_rollout(plain: PPO, fast: PPO, seed: int) -> None:
    """A rollout of the plain model's policy on random observations, the same in both buffers."""
    generator, buffer = np.random.default_rng(seed), plain.rollout_buffer
    torch.manual_seed(seed)
    for model in (plain, fast):
        model.rollout_buffer.reset()
    for _ in range(buffer.buffer_size):
        obs = generator.normal(size=(buffer.n_envs, *buffer.obs_shape)).astype(np.float32)
        with torch.no_grad():
            action, value, log_prob = plain.policy(torch.from_numpy(obs))
        reward, start = generator.normal(size=buffer.n_envs), generator.random(buffer.n_envs) < 0.05
        for model in (plain, fast):
            model.rollout_buffer.add(obs, action.numpy(), reward, start, value, log_prob)
    last, done = torch.from_numpy(generator.normal(size=buffer.n_envs)).float(), np.zeros(buffer.n_envs, bool)
    for model in (plain, fast):
        model.rollout_buffer.compute_returns_and_advantage(last, done)
    np.testing.assert_array_equal(plain.rollout_buffer.advantages, fast.rollout_buffer.advantages)
    np.testing.assert_array_equal(plain.rollout_buffer.returns, fast.rollout_buffer.returns)


def both(plain: Any, fast: Any, seed: int, call: Any) -> None:
    """`call` on each, from the same state of both generators; both draw the same numbers."""
    after = []
    for model in (plain, fast):
        np.random.seed(seed)
        torch.manual_seed(seed)
        call(model)
        after.append((np.random.random(), float(torch.rand(1))))
    assert after[0] == after[1]


class Comparison:
    """Two models that are updated side by side.

    Loss and network have kinks (a unit at zero, a ratio or value at its clip). Where rounding puts two float32 programs
    on different sides of one, they part for good, though both are right: the fast model then goes on from the plain
    one's state, and it is counted. An error would part them at every update.
    """

    def __init__(self, plain: Any, fast: Any, tolerance: float) -> None:
        self.plain, self.fast, self.tolerance = plain, fast, tolerance
        self.partings, self.farthest = 0, 0.0

    def look(self) -> None:
        far = distance(self.plain, self.fast)
        if far > self.tolerance:
            self.partings += 1
            self.fast.set_parameters(copy.deepcopy(self.plain.get_parameters()))
            if getattr(self.plain, "log_ent_coef", None) is not None:  # no parameter to Stable-Baselines3
                self.fast.log_ent_coef.data.copy_(self.plain.log_ent_coef.data)
            far = distance(self.plain, self.fast)
            assert far == 0.0
        self.farthest = max(self.farthest, far)


def distance(plain: Any, fast: Any) -> float:
    """The largest difference of parameters, target and Adam's moments, relative to the largest number of each kind."""
    far = 0.0
    for one, other in zip(_vectors(plain), _vectors(fast), strict=True):
        far = max(far, float((one - other).abs().max() / (1e-3 + one.abs().max())))
    return far


def optimizers(model: Any) -> list[Any]:
    if not isinstance(model, SAC | TD3):
        return [model.policy.optimizer]
    tuned = getattr(model, "ent_coef_optimizer", None)
    return [model.actor.optimizer, model.critic.optimizer, *([] if tuned is None else [tuned])]


def _vectors(model: Any) -> list[torch.Tensor]:
    vectors = [torch.cat([value.reshape(-1) for value in model.policy.state_dict().values()])]
    if getattr(model, "log_ent_coef", None) is not None:
        vectors.append(model.log_ent_coef.detach())
    for optimizer in optimizers(model):
        state = optimizer.state_dict()["state"]
        for name in ("exp_avg", "exp_avg_sq", "step"):
            vectors.append(torch.cat([torch.zeros(0), *(state[key][name].reshape(-1) for key in sorted(state))]))
    return vectors


def logged(model: Any) -> dict[str, float]:
    return {name: float(value) for name, value in model.logger.name_to_value.items() if name.startswith("train/")}


class Twisted(gymnasium.Wrapper):
    """An env that says things about its steps: a list that it goes on changing, an array, a number."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.trail: list[int] = []

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.trail.append(int(action))
        return obs, reward, terminated, truncated, info | {"trail": self.trail, "twice": 2 * obs, "number": 1.5}
