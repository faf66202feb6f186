"""N corridors stepped together: arrays in, arrays out, no loop over envs."""

import numpy as np

from hotloop.core.types import ArraySpec, DiscreteActions, EnvStep


class Corridor:
    """Action 1 walks right, 0 left; every step costs a little, the end pays 1."""

    obs_spec, action_spec = ArraySpec((1,)), DiscreteActions(2)
    has_action_mask, saves_state = False, True

    def __init__(self, num_envs: int, seeds: np.ndarray, *, length: int = 10, max_episode_steps: int = 100) -> None:
        self.num_envs, self.length, self.limit = num_envs, length, max_episode_steps
        self.state = {name: np.zeros(num_envs, np.int64) for name in ("place", "clock")}  # `seeds`: nothing is drawn

    def reset(self):
        for values in self.state.values():
            values[:] = 0
        return self.look(), None

    def step(self, action):
        place, clock = self.state["place"], self.state["clock"]
        place[:] = np.maximum(place + np.where(action == 1, 1, -1), 0)
        clock += 1
        arrived, late = place >= self.length, clock >= self.limit
        final_obs, reward = self.look(), np.where(arrived, 1.0, -0.01).astype(np.float32)
        place[arrived | late] = clock[arrived | late] = 0  # the next episode starts in the same step
        return EnvStep(self.look(), reward, arrived, late & ~arrived, final_obs)

    def look(self):
        return (self.state["place"][:, None] / self.length).astype(np.float32)

    def get_state(self):
        return {name: values.copy() for name, values in self.state.items()}

    def set_state(self, state):
        for name, values in self.state.items():
            values[:] = state[name]

    def close(self):
        pass
