"""Generalised advantages, one env at a time: on lists that grow at their front, and on tensors made beforehand."""

import torch


def compute_gae(rewards, values, last_value, final_values, terminated, truncated, gamma, lam):
    """Advantages and returns of one env's steps; lists of Python numbers, as a rollout gathers them."""
    advantages: list = []
    gae = 0.0
    values = [*values, last_value]
    for step in reversed(range(len(rewards))):
        if terminated[step]:
            next_value, gae = 0.0, 0.0
        elif truncated[step]:
            next_value, gae = final_values[step], 0.0
        else:
            next_value = values[step + 1]
        delta = rewards[step] + gamma * next_value - values[step]
        gae = delta + gamma * lam * gae
        advantages.insert(0, gae)
    returns = [advantage + value for advantage, value in zip(advantages, values, strict=False)]
    return advantages, returns


def compute_gae_on_tensors(rewards, values, last_value, final_values, terminated, truncated, gamma, lam):
    """The same without insertions: tensors [T] made beforehand, still one number at a time."""
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
