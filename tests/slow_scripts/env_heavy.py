"""Eight envs of half a millisecond each are stepped in one process. Remedy: in workers, while cores are idle."""

import gymnasium
import numpy as np
from training import Learner, arguments, train

options = arguments(env_calls=600)
ENVS = 8


class Physics(gymnasium.Env):
    """Four hundred small steps of a pendulum for each env step, in Python."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.angle, self.speed, self.age = float(self.np_random.normal()), 0.0, 0
        return self.seen(), {}

    def seen(self):
        return np.array([self.angle, self.speed, self.age / 100, 1.0], np.float32)

    def step(self, action):
        for _ in range(400):
            self.speed += 1e-4 * (action - 0.5 - self.angle)
            self.angle += 1e-3 * self.speed
        self.age += 1
        return self.seen(), -abs(self.angle), False, self.age >= 100, {}


class Envs:
    """The vector env as the training loop wants it."""

    def __init__(self):
        vector = gymnasium.vector.AsyncVectorEnv if options.healthy else gymnasium.vector.SyncVectorEnv
        self.envs = vector([Physics] * ENVS)

    def reset(self):
        return self.envs.reset(seed=7)

    def step(self, action):
        return self.envs.step(action)


if __name__ == "__main__":
    env = Envs()
    train(options.env_calls, env=env, learner=Learner())
    env.envs.close()
