"""An environment of your own, trained from Python.

From the command line: hotloop train dqn --env.id own_env.py:Corridor
"""

import gymnasium
import numpy as np


class Corridor(gymnasium.Env):
    """Walk right to the end of a corridor; every step costs a little."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    length = 10

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.place, self.clock = 0, 0
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.place = max(0, self.place + (1 if action == 1 else -1))
        self.clock += 1
        arrived = self.place >= self.length
        return self._obs(), 1.0 if arrived else -0.01, arrived, self.clock >= 100, {}

    def _obs(self) -> np.ndarray:
        return np.array([self.place / self.length], np.float32)


if __name__ == "__main__":
    import hotloop

    settings = hotloop.preset("cartpole-dqn", total_env_steps=20_000, env={"id": f"{__file__}:Corridor", "num_envs": 4})
    result = hotloop.train(settings)
    print(f"mean return {result['evaluation']['mean_return']:.2f}; the best possible is 0.91")
