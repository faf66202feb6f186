"""From features to Q-values [B, A], or to logits [B, A, Z] when there are Z > 1 atoms."""

from __future__ import annotations

from torch import Tensor, nn

from hotloop.nets.torsos import Linear


class QHead(nn.Module):
    """One linear layer."""

    def __init__(self, num_in: int, num_actions: int, atoms: int, linear: Linear) -> None:
        super().__init__()
        self.shape = (num_actions, atoms) if atoms > 1 else (num_actions,)
        self.output = linear(num_in, num_actions * atoms)

    def forward(self, features: Tensor) -> Tensor:
        return self.output(features).unflatten(-1, self.shape)


def dueling_q(value: Tensor, advantage: Tensor) -> Tensor:
    """Q = V + A - mean_a A (Wang et al. 2016, equation 9), from [B, 1, Z] and [B, A, Z]."""
    return value + advantage - advantage.mean(-2, keepdim=True)


class DuelingHead(nn.Module):
    """A layer for the state's value and one for the advantages, atom by atom where there are atoms."""

    def __init__(self, num_in: int, num_actions: int, atoms: int, linear: Linear) -> None:
        super().__init__()
        self.shape = (num_actions, atoms)
        self.value = linear(num_in, atoms)
        self.advantage = linear(num_in, num_actions * atoms)

    def forward(self, features: Tensor) -> Tensor:
        value = self.value(features).unsqueeze(-2)  # [B, 1, Z]
        advantage = self.advantage(features).unflatten(-1, self.shape)  # [B, A, Z]
        q = dueling_q(value, advantage)
        return q if self.shape[1] > 1 else q.squeeze(-1)
