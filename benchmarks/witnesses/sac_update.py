"""A soft actor-critic's learning step, and TD3's: modules, three torch.optim.Adam, zero_grad, loss, backward, step."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

LOG_STD_MIN, LOG_STD_MAX = -20, 2


def mlp(sizes):
    layers = []
    for size_in, size_out in zip(sizes[:-2], sizes[1:-1], strict=True):
        layers += [nn.Linear(size_in, size_out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


class Critic(nn.Module):
    def __init__(self, obs_size, num_actions, hidden):
        super().__init__()
        self.q = mlp([obs_size + num_actions, *hidden, 1])

    def forward(self, obs, action):
        return self.q(torch.cat([obs, action], dim=1)).squeeze(1)


def polyak(source, target, tau):
    with torch.no_grad():
        for parameter, slow in zip(source.parameters(), target.parameters(), strict=True):
            slow.data.mul_(1 - tau).add_(tau * parameter.data)


class SACAgent:
    def __init__(
        self, obs_size, num_actions, hidden=(256, 256), lr=3e-4, gamma=0.99, tau=0.005, alpha=1.0, learn_alpha=True
    ):
        self.actor = mlp([obs_size, *hidden, 2 * num_actions])
        self.critic1, self.critic2 = Critic(obs_size, num_actions, hidden), Critic(obs_size, num_actions, hidden)
        self.target1, self.target2 = copy.deepcopy(self.critic1), copy.deepcopy(self.critic2)
        self.log_alpha = torch.full((1,), alpha).log().requires_grad_(learn_alpha)
        self.target_entropy = -float(num_actions)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=lr)
        self.critic_optimizer = torch.optim.Adam([*self.critic1.parameters(), *self.critic2.parameters()], lr=lr)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=lr)
        self.gamma, self.tau, self.learn_alpha = gamma, tau, learn_alpha

    def sample(self, obs, noise):
        mean, log_std = self.actor(obs).chunk(2, dim=1)
        normal = Normal(mean, log_std.clamp(LOG_STD_MIN, LOG_STD_MAX).exp())
        u = normal.mean + normal.stddev * noise
        log_prob = normal.log_prob(u) - 2 * (torch.log(torch.tensor(2.0)) - u - F.softplus(-2 * u))
        return torch.tanh(u), log_prob.sum(dim=1)

    def update(self, obs, action, reward, next_obs, done, next_noise, noise, weight=None):
        """One gradient step of each; returns the critics' loss and each row's error."""
        weight = torch.ones_like(reward) if weight is None else weight
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            next_action, next_log_prob = self.sample(next_obs, next_noise)
            next_q = torch.min(self.target1(next_obs, next_action), self.target2(next_obs, next_action))
            target = reward + self.gamma * (1 - done) * (next_q - alpha * next_log_prob)
        errors = [critic(obs, action) - target for critic in (self.critic1, self.critic2)]
        critic_loss = 0.5 * sum((weight * error**2).mean() for error in errors)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        action_pi, log_prob = self.sample(obs, noise)
        q = torch.min(self.critic1(obs, action_pi), self.critic2(obs, action_pi))
        actor_loss = (alpha * log_prob - q).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()

        if self.learn_alpha:
            alpha_loss = -(self.log_alpha * (log_prob.detach() + self.target_entropy)).mean()
            self.alpha_optimizer.zero_grad()
            alpha_loss.backward()
            self.alpha_optimizer.step()

        polyak(self.critic1, self.target1, self.tau)
        polyak(self.critic2, self.target2, self.tau)
        return critic_loss.item(), sum(error.detach().abs() for error in errors) / 2


class TD3Agent:
    def __init__(
        self, obs_size, num_actions, hidden=(256, 256), lr=3e-4, gamma=0.99, tau=0.005, smoothing=0.2, noise_clip=0.5,
        policy_delay=2,
    ):  # fmt: skip
        self.actor = mlp([obs_size, *hidden, num_actions])
        self.critic1, self.critic2 = Critic(obs_size, num_actions, hidden), Critic(obs_size, num_actions, hidden)
        self.target1, self.target2 = copy.deepcopy(self.critic1), copy.deepcopy(self.critic2)
        self.target_actor = copy.deepcopy(self.actor)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=lr)
        self.critic_optimizer = torch.optim.Adam([*self.critic1.parameters(), *self.critic2.parameters()], lr=lr)
        self.gamma, self.tau, self.policy_delay = gamma, tau, policy_delay
        self.smoothing, self.noise_clip, self.updates = smoothing, noise_clip, 0

    def update(self, obs, action, reward, next_obs, done, next_noise, noise=None, weight=None):
        weight = torch.ones_like(reward) if weight is None else weight
        with torch.no_grad():
            jitter = (self.smoothing * next_noise).clamp(-self.noise_clip, self.noise_clip)
            next_action = (torch.tanh(self.target_actor(next_obs)) + jitter).clamp(-1, 1)
            next_q = torch.min(self.target1(next_obs, next_action), self.target2(next_obs, next_action))
            target = reward + self.gamma * (1 - done) * next_q
        errors = [critic(obs, action) - target for critic in (self.critic1, self.critic2)]
        critic_loss = sum((weight * error**2).mean() for error in errors)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
        self.updates += 1
        if self.updates % self.policy_delay == 0:
            actor_loss = -self.critic1(obs, torch.tanh(self.actor(obs))).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()
            polyak(self.critic1, self.target1, self.tau)
            polyak(self.critic2, self.target2, self.tau)
            polyak(self.actor, self.target_actor, self.tau)
        return critic_loss.item(), sum(error.detach().abs() for error in errors) / 2
