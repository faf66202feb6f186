"""DQN on CartPole in Tianshou 2: a collector on one env and the off-policy trainer, without test episodes.

Its DQN has no gradient clipping, and computes the online network on the next observations even where it is not double.
"""

from __future__ import annotations

import gymnasium
import torch
from clocked_cartpole import ENV_ID, HIDDEN, LEARNING_STARTS, SETTINGS, read_arguments, report
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net


def main() -> None:
    arguments = read_arguments()
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    envs = DummyVectorEnv([lambda: gymnasium.make(ENV_ID)])
    space = envs.action_space[0]
    policy = DiscreteQLearningPolicy(
        model=Net(state_shape=4, action_shape=2, hidden_sizes=list(HIDDEN)),
        action_space=space,
        eps_training=SETTINGS["epsilon"],
    )
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=SETTINGS["lr"]),
        gamma=SETTINGS["gamma"],
        target_update_freq=SETTINGS["target_every"] // arguments.update_every,
        is_double=False,
        huber_loss_delta=1.0,
    )
    collector = Collector(algorithm, envs, VectorReplayBuffer(SETTINGS["capacity"], 1), exploration_noise=True)
    collector.reset()
    collector.collect(n_step=LEARNING_STARTS)
    result = algorithm.run_training(
        OffPolicyTrainerParams(
            max_epochs=1,
            epoch_num_steps=arguments.total - LEARNING_STARTS + arguments.update_every,
            training_collector=collector,
            collection_step_num_env_steps=arguments.update_every,
            update_step_num_gradient_steps_per_sample=1 / arguments.update_every,
            batch_size=SETTINGS["batch"],
            verbose=False,
            show_progress=False,
        )
    )
    report("tianshou", result.update_step)


if __name__ == "__main__":
    main()
