"""A DQN update as an ordinary PyTorch program: modules, autograd, torch.optim.Adam. Slow and obvious."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

ACTIVATIONS = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "selu": nn.SELU,
    "leaky_relu": nn.LeakyReLU,
}


class QNetwork(nn.Module):
    """[B, F] to [B, A, Z]."""

    def __init__(
        self, obs_size: int, hidden: tuple[int, ...], num_actions: int, activation: str, dueling: bool, atoms: int
    ) -> None:
        super().__init__()
        widths = (obs_size, *hidden)
        layers: list[nn.Module] = []
        for before, after in zip(widths[:-1], widths[1:], strict=True):
            layers += [nn.Linear(before, after), ACTIVATIONS[activation]()]
        self.torso = nn.Sequential(*layers)
        self.value = nn.Linear(widths[-1], atoms) if dueling else None
        self.advantage = nn.Linear(widths[-1], num_actions * atoms)
        self.shape = (num_actions, atoms)

    def forward(self, obs: Tensor) -> Tensor:
        features = self.torso(obs)
        out = self.advantage(features).unflatten(-1, self.shape)
        if self.value is None:
            return out
        return self.value(features).unsqueeze(-2) + out - out.mean(dim=-2, keepdim=True)


class TorchDQN:
    """Online and target network with one optimizer; `update` does what one native update does."""

    def __init__(self, network: QNetwork, constants, v_min: float, v_max: float) -> None:
        self.online, self.target, self.constants = network, copy.deepcopy(network), constants
        self.support = torch.linspace(v_min, v_max, network.shape[1], dtype=torch.float32)
        betas = (constants.beta1, constants.beta2)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1.0, betas=betas, eps=constants.epsilon)
        self.updates = 0

    def q(self, network: QNetwork, obs: Tensor) -> Tensor:
        out = network(obs)
        return out.squeeze(-1) if out.shape[-1] == 1 else (out.softmax(-1) * self.support).sum(-1)

    def update(self, obs, action, reward, discount, next_obs, weight, mask, lr: float) -> dict[str, Tensor]:
        rows = torch.arange(len(action))
        with torch.no_grad():
            q_select = self.q(self.online if self.constants.double else self.target, next_obs)
            if mask is not None:
                q_select = torch.where(mask, q_select, -torch.inf)
            best = q_select.argmax(-1)
        q = self.q(self.online, obs)[rows, action]
        if self.online.shape[1] == 1:
            row_loss, td_error = self._scalar_loss(q, best, reward, discount, next_obs)
        else:
            row_loss = self._categorical_loss(self.online(obs)[rows, action], best, reward, discount, next_obs)
            td_error = row_loss
        loss = (weight * row_loss).mean()
        norm = self._step(loss, lr)
        return {
            "td_error": td_error.detach(),
            "loss": loss.detach(),
            "q_mean": q.mean().detach(),
            "gradient_norm": norm,
        }

    def _scalar_loss(self, q, best, reward, discount, next_obs):
        with torch.no_grad():
            y = reward + discount * self.q(self.target, next_obs)[torch.arange(len(best)), best]
        kind = functional.smooth_l1_loss if self.constants.huber else functional.mse_loss
        return kind(q, y, reduction="none"), (q - y).abs()

    def _categorical_loss(self, logits, best, reward, discount, next_obs):
        """Mass moved atom by atom."""
        with torch.no_grad():
            probability = self.target(next_obs)[torch.arange(len(best)), best].softmax(-1)
            projected = torch.zeros_like(probability)
            delta = self.support[1] - self.support[0]
            for row in range(len(best)):
                for atom, mass in enumerate(probability[row]):
                    moved = (reward[row] + discount[row] * self.support[atom]).clamp(self.support[0], self.support[-1])
                    share = (1 - (self.support - moved).abs() / delta).clamp(min=0)
                    projected[row] += mass * share
        return -(projected * logits.log_softmax(-1)).sum(-1)

    def _step(self, loss: Tensor, lr: float) -> Tensor:
        self.optimizer.zero_grad()
        loss.backward()
        limit = self.constants.max_norm if self.constants.max_norm > 0 else torch.inf
        norm = nn.utils.clip_grad_norm_(self.online.parameters(), limit)
        self.optimizer.param_groups[0]["lr"] = lr
        self.optimizer.step()
        self.updates += 1
        if self.constants.target_every and self.updates % self.constants.target_every == 0:
            self._move_target(self.constants.tau)
        return norm

    @torch.no_grad()
    def _move_target(self, tau: float) -> None:
        for old, new in zip(self.target.parameters(), self.online.parameters(), strict=True):
            old.copy_(tau * new + (1 - tau) * old)
