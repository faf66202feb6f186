"""Epsilon-greedy acting."""

import random

import numpy as np
import torch


def act(network, obs, epsilon, num_actions, rng=random):
    """For one environment: the network is asked only when the coin says so."""
    if rng.random() < epsilon:
        return rng.randrange(num_actions)
    with torch.no_grad():
        q = network(torch.tensor(obs).unsqueeze(0))
    return q.argmax(dim=1).item()


def act_many(network, obs, epsilon, num_actions, rng=random):
    """For several environments: one forward pass, then a coin for each."""
    with torch.no_grad():
        actions = network(torch.from_numpy(obs)).argmax(dim=1).numpy()
    for i in range(len(actions)):
        if rng.random() < epsilon:
            actions[i] = rng.randrange(num_actions)
    return np.asarray(actions)
