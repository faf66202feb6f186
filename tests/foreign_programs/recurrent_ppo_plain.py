"""PPO with an LSTM in plain PyTorch, masked CartPole: sequences unrolled cell by cell, states cut at episode ends."""

import sys

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

NUM_ENVS, NUM_STEPS, EPOCHS, HIDDEN = 8, 64, 4, 64
GAMMA, LAMBDA, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.01


class RecurrentPolicy(nn.Module):
    def __init__(self, n_inputs, n_actions):
        super().__init__()
        self.encoder = nn.Linear(n_inputs, HIDDEN)
        self.lstm = nn.LSTMCell(HIDDEN, HIDDEN)
        self.actor = nn.Linear(HIDDEN, n_actions)
        self.critic = nn.Linear(HIDDEN, 1)

    def forward(self, obs, state, done):
        x = torch.tanh(self.encoder(obs))
        keep = (1.0 - done).unsqueeze(1)
        h, c = self.lstm(x, (state[0] * keep, state[1] * keep))
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1), (h, c)


def evaluate_sequence(policy, obs, actions, dones, state):
    log_probs, values, entropies = [], [], []
    for t in range(obs.shape[0]):
        dist, value, state = policy(obs[t], state, dones[t])
        log_probs.append(dist.log_prob(actions[t]))
        values.append(value)
        entropies.append(dist.entropy())
    return torch.stack(log_probs), torch.stack(values), torch.stack(entropies)


def make_env():
    return gym.make("CartPole-v1")


envs = gym.vector.SyncVectorEnv([make_env for _ in range(NUM_ENVS)])
policy = RecurrentPolicy(2, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
mask = [0, 2]

obs, _ = envs.reset(seed=0)
obs = torch.tensor(obs[:, mask])
done = torch.zeros(NUM_ENVS)
state = (torch.zeros(NUM_ENVS, HIDDEN), torch.zeros(NUM_ENVS, HIDDEN))
steps, returns, running = 0, [], np.zeros(NUM_ENVS)
while steps < int(sys.argv[1]):
    start_state = (state[0].clone(), state[1].clone())
    rollout = {key: [] for key in ("obs", "actions", "log_probs", "rewards", "dones", "values")}
    for _ in range(NUM_STEPS):
        with torch.no_grad():
            dist, value, state = policy(obs, state, done)
            action = dist.sample()
        rollout["obs"].append(obs)
        rollout["actions"].append(action)
        rollout["log_probs"].append(dist.log_prob(action))
        rollout["dones"].append(done)
        rollout["values"].append(value)
        next_obs, reward, terminated, truncated, _ = envs.step(action.numpy())
        rollout["rewards"].append(torch.tensor(reward, dtype=torch.float32))
        running += reward
        ended = np.logical_or(terminated, truncated)
        for i in np.flatnonzero(ended):
            returns.append(running[i])
            running[i] = 0
        obs, done = torch.tensor(next_obs[:, mask]), torch.tensor(ended, dtype=torch.float32)
        steps += NUM_ENVS
    batch = {key: torch.stack(column) for key, column in rollout.items()}
    with torch.no_grad():
        _, last_value, _ = policy(obs, state, done)
        advantages = torch.zeros_like(batch["rewards"])
        gae = 0.0
        for t in reversed(range(NUM_STEPS)):
            not_done = 1.0 - (done if t == NUM_STEPS - 1 else batch["dones"][t + 1])
            next_value = last_value if t == NUM_STEPS - 1 else batch["values"][t + 1]
            delta = batch["rewards"][t] + GAMMA * next_value * not_done - batch["values"][t]
            gae = delta + GAMMA * LAMBDA * not_done * gae
            advantages[t] = gae
        targets = advantages + batch["values"]
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(EPOCHS):
        log_probs, values, entropies = evaluate_sequence(
            policy, batch["obs"], batch["actions"], batch["dones"], start_state
        )
        ratio = (log_probs - batch["log_probs"]).exp()
        clipped = torch.clamp(ratio, 1 - CLIP, 1 + CLIP)
        loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        loss = loss + 0.5 * (values - targets).pow(2).mean() - ENTROPY * entropies.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
    print(f"steps {steps}, return {np.mean(returns[-50:]) if returns else 0:.1f}")
