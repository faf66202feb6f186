"""Generalised advantages, one env at a time: on lists of floats, on lists that grow at their front, on tensors."""

import torch


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
