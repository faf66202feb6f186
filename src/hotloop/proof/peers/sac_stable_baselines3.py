"""SAC on Pendulum in Stable-Baselines3: `SAC("MlpPolicy", env_id).learn(...)`, which steps one env."""

from __future__ import annotations

import torch
from clocked_cartpole import report
from clocked_pendulum import ENV_ID, LEARNING_STARTS, SETTINGS, read_sac_arguments
from stable_baselines3 import SAC


def main() -> None:
    arguments, hidden, batch = read_sac_arguments()
    torch.set_num_threads(1)
    model = SAC(
        "MlpPolicy",
        ENV_ID,
        learning_rate=SETTINGS["lr"],
        buffer_size=SETTINGS["capacity"],
        learning_starts=LEARNING_STARTS,
        batch_size=batch,
        gamma=SETTINGS["gamma"],
        tau=SETTINGS["tau"],
        policy_kwargs={"net_arch": list(hidden)},
        seed=arguments.seed,
        device="cpu",
        verbose=0,
    )
    model.learn(arguments.total + 1, log_interval=10**9)
    report("stable-baselines3", model._n_updates)


if __name__ == "__main__":
    main()
