"""A module whose import registers an env: `tests.envs.registers_itself:Steady-v0`."""

import gymnasium

gymnasium.register("Steady-v0", entry_point="tests.envs.planted_worker_envs:Steady", max_episode_steps=9)
