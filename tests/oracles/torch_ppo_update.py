"""One PPO update as one would write it first: torch's distributions, torch's Adam, one loss at the end."""

from __future__ import annotations

import torch
from torch import nn
from torch.distributions import Categorical, Normal


class PlainUpdate:
    """Goes on from `network` (outputs, value = network(obs); `log_std` for numbers) with an optimizer of its own."""

    def __init__(self, network: nn.Module, lr: float, max_norm: float, epsilon: float = 1e-5) -> None:
        self.network, self.max_norm = network, max_norm
        self.optimizer = torch.optim.Adam(network.parameters(), lr=lr, eps=epsilon)

    def policy(self, outputs, continuous, log_std):
        return Normal(outputs, log_std.exp()) if continuous else Categorical(logits=outputs)

    def update(self, rows, old_log_std, continuous, clip, value_clip, vf_coef, ent_coef):
        outputs, value = self.network(rows.obs)
        new = self.policy(outputs, continuous, self.network.log_std)
        old = self.policy(rows.outputs, continuous, old_log_std)
        action = rows.action if continuous else rows.action[:, 0]
        log_prob, old_log_prob = new.log_prob(action), old.log_prob(action)
        entropy = new.entropy()
        if continuous:
            log_prob, old_log_prob, entropy = log_prob.sum(-1), old_log_prob.sum(-1), entropy.sum(-1)
        advantage = (rows.advantage - rows.advantage.mean()) / (rows.advantage.std(unbiased=False) + 1e-8)
        ratio = (log_prob - old_log_prob).exp()
        policy_loss = -torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()
        error = (value - rows.returns) ** 2
        if value_clip:
            held = rows.value + (value - rows.value).clamp(-value_clip, value_clip)
            error = torch.max(error, (held - rows.returns) ** 2)
        loss = policy_loss + vf_coef * error.mean() - ent_coef * entropy.mean()
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.max_norm)
        self.optimizer.step()
        return [loss.item(), policy_loss.item(), error.mean().item(), entropy.mean().item(), norm.item()]
