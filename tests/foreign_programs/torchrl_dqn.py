"""TorchRL's DQN on CartPole: a Q-value module, a collector, a replay buffer, a loss module."""

import sys

import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.envs import GymEnv, StepCounter, TransformedEnv
from torchrl.modules import MLP, EGreedyModule, QValueModule
from torchrl.objectives import DQNLoss, SoftUpdate

torch.manual_seed(0)
total_steps = int(sys.argv[1])
env = TransformedEnv(GymEnv("CartPole-v1"), StepCounter())
env.set_seed(0)

value_mlp = MLP(out_features=env.action_spec.shape[-1], num_cells=[64, 64])
value_net = TensorDictModule(value_mlp, in_keys=["observation"], out_keys=["action_value"])
policy = TensorDictSequential(value_net, QValueModule(spec=env.action_spec))
exploration_module = EGreedyModule(env.action_spec, annealing_num_steps=100_000, eps_init=0.5)
policy_explore = TensorDictSequential(policy, exploration_module)

collector = Collector(env, policy_explore, frames_per_batch=100, total_frames=total_steps, init_random_frames=500)
rb = ReplayBuffer(storage=LazyTensorStorage(100_000))
loss = DQNLoss(policy, action_space=env.action_spec, delay_value=True)
optim = torch.optim.Adam(loss.parameters(), lr=0.02)
updater = SoftUpdate(loss, eps=0.99)

total_count, longest = 0, 0
for data in collector:
    rb.extend(data)
    max_length = rb[:]["next", "step_count"].max()
    if len(rb) > 500:
        for _ in range(10):
            sample = rb.sample(128)
            loss_vals = loss(sample)
            loss_vals["loss"].backward()
            optim.step()
            optim.zero_grad()
            exploration_module.step(data.numel())
            updater.step()
    total_count += data.numel()
    if max_length > longest:
        longest = max_length
        print(f"{total_count} frames, longest episode {int(longest)}")
