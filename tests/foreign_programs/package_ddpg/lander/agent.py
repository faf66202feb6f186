from copy import deepcopy

import numpy as np
import torch

from .networks import Actor, Critic


class DDPGAgent:
    def __init__(self, obs_dim, act_dim, limit, config):
        self.config, self.limit, self.act_dim = config, limit, act_dim
        self.actor = Actor(obs_dim, act_dim, config.hidden_sizes, limit)
        self.critic = Critic(obs_dim, act_dim, config.hidden_sizes)
        self.actor_target, self.critic_target = deepcopy(self.actor), deepcopy(self.critic)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=config.actor_lr)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=config.critic_lr)

    def act(self, obs):
        with torch.no_grad():
            action = self.actor(torch.as_tensor(obs, dtype=torch.float32)).numpy()
        action += self.config.noise * self.limit * np.random.randn(self.act_dim)
        return np.clip(action, -self.limit, self.limit)

    def update(self, batch):
        obs, act, rew, obs2, done = (torch.as_tensor(batch[key]) for key in ("obs", "act", "rew", "obs2", "done"))
        with torch.no_grad():
            backup = rew + self.config.gamma * (1 - done) * self.critic_target(obs2, self.actor_target(obs2))
        critic_loss = ((self.critic(obs, act) - backup) ** 2).mean()
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        actor_loss = -self.critic(obs, self.actor(obs)).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()

        with torch.no_grad():
            for net, target in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
                for param, target_param in zip(net.parameters(), target.parameters()):
                    target_param.mul_(1 - self.config.tau)
                    target_param.add_(self.config.tau * param)
        return {"critic_loss": critic_loss.item(), "actor_loss": actor_loss.item()}
