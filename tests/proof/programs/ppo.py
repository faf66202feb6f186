"""PPO on CartPole in plain PyTorch, four envs side by side."""

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

torch.set_num_threads(1)
np.random.seed(1)
torch.manual_seed(1)
envs = gymnasium.make_vec("CartPole-v1", 4, vectorization_mode="sync")
actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4)
obs, _ = envs.reset(seed=1)
for _iteration in range(4):
    rows = []
    for _ in range(64):
        with torch.no_grad():
            tensor = torch.from_numpy(obs)
            policy, value = Categorical(logits=actor(tensor)), critic(tensor)[:, 0]
            action = policy.sample()
        next_obs, reward, terminated, truncated, _ = envs.step(action.numpy())
        ended = torch.from_numpy(terminated | truncated).float()
        rows.append((tensor, action, policy.log_prob(action), value, torch.from_numpy(reward).float(), ended))
        obs = next_obs
    states, actions, old, values, rewards, dones = (torch.stack(column) for column in zip(*rows, strict=True))
    with torch.no_grad():
        following = critic(torch.from_numpy(obs))[:, 0]
    advantage, carried = torch.zeros_like(rewards), torch.zeros(4)
    for t in reversed(range(64)):
        after = following if t == 63 else values[t + 1]
        delta = rewards[t] + 0.99 * (1 - dones[t]) * after - values[t]
        carried = advantage[t] = delta + 0.99 * 0.95 * (1 - dones[t]) * carried
    goal = (advantage + values).reshape(-1)
    flat = [one.reshape(256, *one.shape[2:]) for one in (states, actions, old, advantage)]
    for _epoch in range(4):
        for part in np.random.permutation(256).reshape(4, 64):
            state, act, before, gain = (one[part] for one in flat)
            policy = Categorical(logits=actor(state))
            ratio = (policy.log_prob(act) - before).exp()
            clipped = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            loss = -clipped + 0.5 * ((critic(state)[:, 0] - goal[part]) ** 2).mean() - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 0.5)
            optimizer.step()
