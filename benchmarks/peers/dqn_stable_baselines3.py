"""DQN on CartPole in Stable-Baselines3: `DQN("MlpPolicy", env_id).learn(...)`, which steps one env."""

from __future__ import annotations

import torch
from clocked_cartpole import ENV_ID, HIDDEN, LEARNING_STARTS, MAX_GRADIENT_NORM, SETTINGS, read_arguments, report
from stable_baselines3 import DQN


def main() -> None:
    arguments = read_arguments()
    torch.set_num_threads(1)
    model = DQN(
        "MlpPolicy",
        ENV_ID,
        learning_rate=SETTINGS["lr"],
        buffer_size=SETTINGS["capacity"],
        learning_starts=LEARNING_STARTS,
        batch_size=SETTINGS["batch"],
        gamma=SETTINGS["gamma"],
        train_freq=arguments.update_every,
        gradient_steps=1,
        target_update_interval=SETTINGS["target_every"],
        exploration_initial_eps=SETTINGS["epsilon"],
        exploration_final_eps=SETTINGS["epsilon"],
        max_grad_norm=MAX_GRADIENT_NORM,
        policy_kwargs={"net_arch": list(HIDDEN)},
        seed=arguments.seed,
        device="cpu",
        verbose=0,
    )
    model.learn(arguments.total + 1, log_interval=10**9)
    report("stable-baselines3", model._n_updates)


if __name__ == "__main__":
    main()
