"""A DQN agent's learning step: modules, torch.optim.Adam, zero_grad, loss, backward, clip, step."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(sizes):
    layers = []
    for size_in, size_out in zip(sizes[:-1], sizes[1:], strict=True):
        layers += [nn.Linear(size_in, size_out), nn.ReLU()]
    return nn.Sequential(*layers)


class QNetwork(nn.Module):
    def __init__(self, obs_size, num_actions, hidden, atoms=1):
        super().__init__()
        self.num_actions, self.atoms = num_actions, atoms
        self.body = mlp([obs_size, *hidden])
        self.head = nn.Linear(hidden[-1], num_actions * atoms)

    def forward(self, obs):
        out = self.head(self.body(obs))
        return out if self.atoms == 1 else out.view(-1, self.num_actions, self.atoms)


class DuelingQNetwork(nn.Module):
    def __init__(self, obs_size, num_actions, hidden, atoms=1):
        super().__init__()
        self.num_actions, self.atoms = num_actions, atoms
        self.body = mlp([obs_size, *hidden])
        self.value = nn.Linear(hidden[-1], atoms)
        self.advantage = nn.Linear(hidden[-1], num_actions * atoms)

    def forward(self, obs):
        features = self.body(obs)
        value = self.value(features).view(-1, 1, self.atoms)
        advantage = self.advantage(features).view(-1, self.num_actions, self.atoms)
        q = value + advantage - advantage.mean(dim=1, keepdim=True)
        return q.squeeze(2) if self.atoms == 1 else q


class DQNAgent:
    def __init__(
        self,
        obs_size,
        num_actions,
        hidden=(64, 64),
        lr=1e-3,
        gamma=0.99,
        n_step=1,
        double=False,
        dueling=False,
        huber=True,
        atoms=1,
        v_min=0.0,
        v_max=200.0,
        max_grad_norm=10.0,
        target_every=500,
    ):
        network = DuelingQNetwork if dueling else QNetwork
        self.online = network(obs_size, num_actions, hidden, atoms)
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.gamma = gamma**n_step
        self.double, self.huber, self.atoms = double, huber, atoms
        self.v_min, self.v_max = v_min, v_max
        self.support = torch.linspace(v_min, v_max, atoms)
        self.max_grad_norm, self.target_every = max_grad_norm, target_every
        self.updates = 0

    def update(self, obs, action, reward, next_obs, done, weight=None, next_mask=None):
        """One gradient step; returns the loss and each row's error (the new priorities)."""
        if self.atoms > 1:
            row_loss = self.distributional_loss(obs, action, reward, next_obs, done, next_mask)
            error = row_loss
        else:
            row_loss, error = self.scalar_loss(obs, action, reward, next_obs, done, next_mask)
        loss = row_loss.mean() if weight is None else (weight * row_loss).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), self.max_grad_norm)
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.target_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item(), error.detach()

    def scalar_loss(self, obs, action, reward, next_obs, done, next_mask):
        with torch.no_grad():
            target_q = self.target(next_obs)
            best = self.best_action(self.online(next_obs) if self.double else target_q, next_mask)
            next_q = target_q.gather(1, best.unsqueeze(1)).squeeze(1)
            target = reward + self.gamma * next_q * (1 - done)
        q = self.online(obs).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss if self.huber else F.mse_loss
        return loss(q, target, reduction="none"), (target - q).abs()

    def distributional_loss(self, obs, action, reward, next_obs, done, next_mask):
        rows = torch.arange(len(action))
        with torch.no_grad():
            next_logits = self.target(next_obs)
            select = self.online(next_obs) if self.double else next_logits
            best = self.best_action((select.softmax(dim=2) * self.support).sum(dim=2), next_mask)
            projected = self.project(next_logits[rows, best].softmax(dim=1), reward, done)
        log_p = F.log_softmax(self.online(obs)[rows, action], dim=1)
        return -(projected * log_p).sum(dim=1)

    def project(self, next_p, reward, done):
        """Put the distribution of r + gamma z back onto the support (Bellemare et al. 2017, algorithm 1)."""
        delta = (self.v_max - self.v_min) / (self.atoms - 1)
        z = reward.unsqueeze(1) + self.gamma * (1 - done).unsqueeze(1) * self.support
        b = (z.clamp(self.v_min, self.v_max) - self.v_min) / delta
        lower, upper = b.floor().long(), b.ceil().long()
        lower[(upper > 0) & (lower == upper)] -= 1
        upper[(lower < self.atoms - 1) & (lower == upper)] += 1
        offset = (torch.arange(len(reward)) * self.atoms).unsqueeze(1)
        projected = torch.zeros_like(next_p)
        projected.view(-1).index_add_(0, (lower + offset).view(-1), (next_p * (upper - b)).view(-1))
        projected.view(-1).index_add_(0, (upper + offset).view(-1), (next_p * (b - lower)).view(-1))
        return projected

    @staticmethod
    def best_action(q, mask):
        if mask is not None:
            q = q.masked_fill(~mask, float("-inf"))
        return q.argmax(dim=1)
