"""SBX's SAC on Pendulum: Stable-Baselines3 in JAX."""

import sys

from sbx import SAC

model = SAC("MlpPolicy", "Pendulum-v1", verbose=1)
model.learn(total_timesteps=int(sys.argv[1]), progress_bar=False)
model.save("sac_pendulum")
