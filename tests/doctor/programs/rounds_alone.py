"""Nothing but rounds of an optimizer, as a fine-tuning script makes them; its rewards come from a function."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 32))
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4)


def reward_of(answers):
    return -(answers**2).mean(dim=1)


while True:
    prompts = torch.randn(64, 32)
    loss = -reward_of(policy(prompts)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
