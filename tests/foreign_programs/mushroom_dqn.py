"""MushroomRL's DQN on its own cart-pole: a network, a Torch approximator, an epsilon-greedy policy, `Core.learn`."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from mushroom_rl.algorithms.value import DQN
from mushroom_rl.approximators.parametric import TorchApproximator
from mushroom_rl.core import Core
from mushroom_rl.environments import CartPole
from mushroom_rl.policy import EpsGreedy
from mushroom_rl.utils.dataset import compute_J
from mushroom_rl.utils.parameters import LinearParameter, Parameter


class Network(torch.nn.Module):
    def __init__(self, input_shape, output_shape, **kwargs):
        super().__init__()
        self._h1 = torch.nn.Linear(input_shape[-1], 80)
        self._h2 = torch.nn.Linear(80, 80)
        self._q = torch.nn.Linear(80, output_shape[0])

    def forward(self, state, action=None):
        features = F.relu(self._h1(state.float()))
        q = self._q(F.relu(self._h2(features)))
        return q if action is None else q.gather(1, action.long()).squeeze()


np.random.seed(1)
torch.manual_seed(1)
mdp = CartPole()
policy = EpsGreedy(epsilon=LinearParameter(value=1.0, threshold_value=0.01, n=5000))
approximator_params = dict(
    network=Network,
    input_shape=mdp.info.observation_space.shape,
    output_shape=mdp.info.action_space.size,
    n_actions=mdp.info.action_space.n,
    optimizer={"class": torch.optim.Adam, "params": {"lr": 1e-3}},
    loss=F.smooth_l1_loss,
)
agent = DQN(
    mdp.info,
    policy,
    TorchApproximator,
    approximator_params=approximator_params,
    batch_size=32,
    initial_replay_size=500,
    max_replay_size=5000,
    target_update_frequency=100,
)

core = Core(agent, mdp)
core.learn(n_steps=500, n_steps_per_fit=500, quiet=True)
for _ in range(max(1, int(sys.argv[1]) // 1000)):
    core.learn(n_steps=1000, n_steps_per_fit=1, quiet=True)
    policy.set_epsilon(Parameter(0.0))
    dataset = core.evaluate(n_episodes=10, quiet=True)
    policy.set_epsilon(LinearParameter(value=0.5, threshold_value=0.01, n=5000))
    print(f"J: {np.mean(compute_J(dataset, mdp.info.gamma)):.3f}")
