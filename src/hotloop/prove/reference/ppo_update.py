"""PPO's update the usual way: two small networks, torch's distributions, torch's Adam, minibatches by indexing."""

import torch
from torch import nn
from torch.distributions import Categorical, Normal


def mlp(sizes):
    layers = []
    for i, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:], strict=False)):
        layers += [nn.Linear(fan_in, fan_out)] + ([nn.Tanh()] if i < len(sizes) - 2 else [])
    return nn.Sequential(*layers)


class PPOAgent(nn.Module):
    def __init__(self, obs_size, hidden, num_outputs, continuous, lr, clip=0.2, entropy_weight=0.01):
        super().__init__()
        self.actor = mlp([obs_size, *hidden, num_outputs])
        self.critic = mlp([obs_size, *hidden, 1])
        self.continuous, self.clip, self.entropy_weight = continuous, clip, entropy_weight
        if continuous:
            self.log_std = nn.Parameter(torch.zeros(num_outputs))
        self.optimizer = torch.optim.Adam(self.parameters(), lr=lr, eps=1e-5)

    def policy(self, outputs):
        return Normal(outputs, self.log_std.exp()) if self.continuous else Categorical(logits=outputs)

    def log_prob(self, policy, action):
        return policy.log_prob(action).sum(-1) if self.continuous else policy.log_prob(action[:, 0])

    def update(self, rollout, orders, batch_size):
        """Some epochs over a rollout of flat tensors, in the given orders of its rows."""
        old_log_prob = self.log_prob(self.policy(rollout["outputs"]), rollout["action"]).detach()
        for order in orders:
            for start in range(0, len(order), batch_size):
                index = order[start : start + batch_size]
                self.update_minibatch({name: value[index] for name, value in rollout.items()}, old_log_prob[index])

    def update_minibatch(self, batch, old_log_prob):
        policy, value = self.policy(self.actor(batch["obs"])), self.critic(batch["obs"]).squeeze(-1)
        advantage = batch["advantage"]
        advantage = (advantage - advantage.mean()) / (advantage.std(unbiased=False) + 1e-8)
        ratio = torch.exp(self.log_prob(policy, batch["action"]) - old_log_prob)
        clipped = torch.clamp(ratio, 1 - self.clip, 1 + self.clip)
        policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
        value_loss = nn.functional.mse_loss(value, batch["returns"])
        entropy = policy.entropy().sum(-1) if self.continuous else policy.entropy()
        loss = policy_loss + 0.5 * value_loss - self.entropy_weight * entropy.mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters(), 0.5)
        self.optimizer.step()
