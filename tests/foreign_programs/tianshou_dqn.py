"""Tianshou 2's DQN on CartPole by its procedural interface: collectors over vector envs, a trainer."""

import sys

import gymnasium as gym
import tianshou as ts
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils import TensorboardLogger
from tianshou.utils.net.common import Net
from tianshou.utils.space_info import SpaceInfo
from torch.utils.tensorboard import SummaryWriter

env_steps = int(sys.argv[1])
logger = TensorboardLogger(SummaryWriter("log/dqn"))
train_envs = ts.env.DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(10)])
test_envs = ts.env.DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(100)])

env = gym.make("CartPole-v1")
space_info = SpaceInfo.from_env(env)
net = Net(
    state_shape=space_info.observation_info.obs_shape,
    action_shape=space_info.action_info.action_shape,
    hidden_sizes=[128, 128, 128],
)
policy = DiscreteQLearningPolicy(
    model=net,
    action_space=env.action_space,
    observation_space=env.observation_space,
    eps_training=0.1,
    eps_inference=0.05,
)
algorithm = DQN(
    policy=policy,
    optim=AdamOptimizerFactory(lr=1e-3),
    gamma=0.9,
    n_step_return_horizon=3,
    target_update_freq=320,
)
train_collector = Collector[CollectStats](algorithm, train_envs, VectorReplayBuffer(20000, 10), exploration_noise=True)
test_collector = Collector[CollectStats](algorithm, test_envs, exploration_noise=True)
train_collector.reset()
train_collector.collect(n_step=640)

result = algorithm.run_training(
    OffPolicyTrainerParams(
        training_collector=train_collector,
        test_collector=test_collector,
        max_epochs=max(1, env_steps // 10000),
        epoch_num_steps=10000,
        collection_step_num_env_steps=10,
        test_step_num_episodes=100,
        batch_size=64,
        update_step_num_gradient_steps_per_sample=1 / 10,
        stop_fn=lambda mean_rewards: False,
        logger=logger,
        test_in_training=False,
    )
)
print(f"best reward {result.best_reward}")
