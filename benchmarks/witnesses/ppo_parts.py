"""Plain parts of PPO: advantages, entropy, update.

Generalized advantages, one env at a time: on lists of floats, on lists that grow at their front, on tensors.

Entropy and KL divergence by drawing: no formula needed, an error that shrinks with the root of the draws.

PPO's update the usual way: two small networks, torch's distributions, torch's Adam, minibatches by indexing.
"""

import torch
from torch import nn
from torch.distributions import Categorical, Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform


def compute_gae(rewards, values, last_value, final_values, terminated, truncated, gamma, lam):
    """Advantages and returns of one env's steps; lists of Python numbers, as a rollout gathers them."""
    advantages = [0.0] * len(rewards)
    gae, next_value = 0.0, last_value
    for step in reversed(range(len(rewards))):
        if terminated[step]:
            next_value, gae = 0.0, 0.0
        elif truncated[step]:
            next_value, gae = final_values[step], 0.0
        delta = rewards[step] + gamma * next_value - values[step]
        gae = delta + gamma * lam * gae
        advantages[step] = gae
        next_value = values[step]
    return advantages, [advantage + value for advantage, value in zip(advantages, values, strict=True)]


def compute_gae_inserting(rewards, values, last_value, final_values, terminated, truncated, gamma, lam):
    """The same into a list that moves all it holds for every step."""
    advantages: list = []
    gae, next_value = 0.0, last_value
    for step in reversed(range(len(rewards))):
        if terminated[step]:
            next_value, gae = 0.0, 0.0
        elif truncated[step]:
            next_value, gae = final_values[step], 0.0
        delta = rewards[step] + gamma * next_value - values[step]
        gae = delta + gamma * lam * gae
        advantages.insert(0, gae)
        next_value = values[step]
    return advantages, [advantage + value for advantage, value in zip(advantages, values, strict=True)]


def compute_gae_on_tensors(rewards, values, last_value, final_values, terminated, truncated, gamma, lam):
    """The same on tensors [T], the advantages made beforehand; every number on the way is a tensor of its own."""
    advantages = torch.zeros_like(rewards)
    gae = torch.zeros(())
    next_value = last_value
    for step in reversed(range(len(rewards))):
        if terminated[step]:
            next_value, gae = torch.zeros(()), torch.zeros(())
        elif truncated[step]:
            next_value, gae = final_values[step], torch.zeros(())
        delta = rewards[step] + gamma * next_value - values[step]
        gae = delta + gamma * lam * gae
        advantages[step] = gae
        next_value = values[step]
    return advantages, advantages + values


def make_policy(logits, counts, mean, log_std, squashed):
    """The independent parts of one state's policy."""
    parts: list = [Categorical(logits=part) for part in torch.split(logits, counts)] if counts else []
    if len(mean):
        numbers = Independent(Normal(mean, log_std.exp()), 1)
        parts.append(TransformedDistribution(numbers, [TanhTransform(cache_size=1)]) if squashed else numbers)
    return parts


def entropy_and_kl(old, new, draws):
    """Mean and standard error of -log p and of log p - log q, over draws from `old`."""
    log_p, log_q = torch.zeros(draws), torch.zeros(draws)
    for p, q in zip(old, new, strict=True):
        sample = p.sample((draws,))
        log_p += p.log_prob(sample)
        log_q += q.log_prob(sample)
    return [(terms.mean().item(), terms.std().item() / draws**0.5) for terms in (-log_p, log_p - log_q)]


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
