"""DQN on CartPole in SBX: Stable-Baselines3 with the update in JAX, and without gradient clipping."""

from __future__ import annotations

from clocked_cartpole import ENV_ID, HIDDEN, LEARNING_STARTS, SETTINGS, read_arguments, report
from sbx import DQN


def main() -> None:
    arguments = read_arguments()
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
        policy_kwargs={"net_arch": list(HIDDEN)},
        seed=arguments.seed,
        device="cpu",
        verbose=0,
    )
    model.learn(arguments.total + 1, log_interval=10**9)
    report("sbx-rl", model._n_updates)


if __name__ == "__main__":
    main()
