"""A DQN that updates after every env step, in the style of CleanRL: `mse_loss`, a target copied every 500 env steps."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Line:
    def reset(self):
        self.state = np.zeros(152, np.float32)
        return self.state.copy()

    def step(self, action):
        self.state[0] += action - 0.5
        done = abs(self.state[0]) > 3
        return self.state.copy(), float(self.state[0]), bool(done), {}


torch.manual_seed(0)
rng = np.random.default_rng(0)
q_network = nn.Sequential(nn.Linear(152, 64), nn.ReLU(), nn.Linear(64, 2))
target_network = nn.Sequential(nn.Linear(152, 64), nn.ReLU(), nn.Linear(64, 2))
target_network.load_state_dict(q_network.state_dict())
optimizer = torch.optim.Adam(q_network.parameters(), lr=2.5e-4)
observations = np.zeros((10_000, 152), np.float32)
next_observations, actions = np.zeros_like(observations), np.zeros(10_000, np.int64)
rewards, dones = np.zeros(10_000, np.float32), np.zeros(10_000, np.float32)

env = Line()
obs = env.reset()
for global_step in range(1_000_000):
    if rng.random() < 0.05:
        action = int(rng.integers(2))
    else:
        with torch.no_grad():
            action = int(q_network(torch.from_numpy(obs)[None]).argmax())
    next_obs, reward, done, _ = env.step(action)
    row = global_step % 10_000
    observations[row], next_observations[row], actions[row] = obs, next_obs, action
    rewards[row], dones[row] = reward, done
    obs = env.reset() if done else next_obs
    if global_step >= 128:
        index = rng.integers(min(global_step, 10_000), size=128)
        with torch.no_grad():
            target_max, _ = target_network(torch.from_numpy(next_observations[index])).max(dim=1)
            td_target = torch.from_numpy(rewards[index]) + 0.99 * target_max * (1 - torch.from_numpy(dones[index]))
        old_val = q_network(torch.from_numpy(observations[index])).gather(1, torch.from_numpy(actions[index])[:, None])
        loss = F.mse_loss(td_target, old_val.squeeze())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if global_step % 500 == 0:
            for target_param, q_param in zip(target_network.parameters(), q_network.parameters(), strict=True):
                target_param.data.copy_(1.0 * q_param.data + 0.0 * target_param.data)
