"""States and next states in one forward: sound where both go through the same weights, and only there.

    hotloop prove examples/pairs/combined_forward.py

A DQN's target comes from a target network. One forward of the online network for both halves of a batch is then another
algorithm (first pair). Where the online network sees both anyway, to choose the action of Double DQN, one forward is
the same (second pair), unless the gradient is let through the next states' half (third pair).
"""

import torch

import hotloop


def network(weights, obs):
    return torch.tanh(obs @ weights[0]) @ weights[1]


def make(size):
    generator = torch.Generator().manual_seed(0)
    obs, next_obs = torch.randn(2, size, 4, generator=generator)
    weights = [torch.randn(4, 16, generator=generator), torch.randn(16, 2, generator=generator)]
    online = tuple(weight.requires_grad_() for weight in weights)
    target = tuple(torch.randn(weight.shape, generator=generator) for weight in weights)
    return online, target, obs, next_obs


def two_forwards(online, target, obs, next_obs):
    q = network(online, obs)
    with torch.no_grad():
        next_q = network(target, next_obs)
    return q, next_q


@hotloop.pair(two_forwards, make, name="one forward in the target's place")
def one_forward(online, target, obs, next_obs):
    q, next_q = network(online, torch.cat([obs, next_obs])).chunk(2)
    return q, next_q.detach()


def double_forwards(online, target, obs, next_obs):
    with torch.no_grad():
        next_q = network(online, next_obs)
        best = next_q.argmax(dim=1, keepdim=True)
        value = network(target, next_obs).gather(1, best)
    return network(online, obs), value, next_q


@hotloop.pair(double_forwards, make, name="one forward of the online network", tolerance=1e-5)  # gradients of 512 rows
def double_combined(online, target, obs, next_obs):
    q, next_q = network(online, torch.cat([obs, next_obs])).chunk(2)
    with torch.no_grad():
        value = network(target, next_obs).gather(1, next_q.argmax(dim=1, keepdim=True))
    return q, value, next_q.detach()


@hotloop.pair(double_forwards, make, name="one forward, not detached")
def double_not_detached(online, target, obs, next_obs):
    q, next_q = network(online, torch.cat([obs, next_obs])).chunk(2)
    with torch.no_grad():
        value = network(target, next_obs).gather(1, next_q.argmax(dim=1, keepdim=True))
    return q, value, next_q
