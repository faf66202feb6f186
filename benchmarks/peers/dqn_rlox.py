"""DQN on CartPole in rlox: its replay in Rust, its network and update in PyTorch. Its loss is the squared error."""

from __future__ import annotations

import torch
from clocked_cartpole import ENV_ID, HIDDEN, LEARNING_STARTS, MAX_GRADIENT_NORM, SETTINGS, read_arguments, report
from rlox.algorithms.dqn import DQN


def main() -> None:
    arguments = read_arguments()
    torch.set_num_threads(1)
    model = DQN(
        ENV_ID,
        buffer_size=SETTINGS["capacity"],
        learning_rate=SETTINGS["lr"],
        batch_size=SETTINGS["batch"],
        gamma=SETTINGS["gamma"],
        target_update_freq=SETTINGS["target_every"],
        exploration_initial_eps=SETTINGS["epsilon"],
        exploration_final_eps=SETTINGS["epsilon"],
        learning_starts=LEARNING_STARTS,
        double_dqn=False,
        hidden=HIDDEN[0],
        train_freq=arguments.update_every,
        max_grad_norm=MAX_GRADIENT_NORM,
        seed=arguments.seed,
    )
    model.train(arguments.total + 1)
    steps = [int(state["step"]) for state in model.optimizer.state.values()]
    report("rlox", steps[0])


if __name__ == "__main__":
    main()
