"""The Q-loss of DQN and Double DQN, straight from the papers."""

import torch
import torch.nn.functional as F


def q_loss(network, target_network, batch, gamma=0.99):
    """Mean squared TD error; the target network values the next state."""
    obs, action, reward, next_obs, done = batch
    with torch.no_grad():
        next_q = target_network(next_obs).max(dim=1)[0]
        target = reward + gamma * next_q * (1 - done)
    q = network(obs).gather(1, action.unsqueeze(1)).squeeze(1)
    return F.mse_loss(q, target)


def double_q_loss(network, target_network, batch, gamma=0.99):
    """The online network chooses the next action, the target network values it."""
    obs, action, reward, next_obs, done = batch
    with torch.no_grad():
        best = network(next_obs).argmax(dim=1, keepdim=True)
        next_q = target_network(next_obs).gather(1, best).squeeze(1)
        target = reward + gamma * next_q * (1 - done)
    q = network(obs).gather(1, action.unsqueeze(1)).squeeze(1)
    return F.mse_loss(q, target)


def gradient(loss, network):
    """Backpropagate and hand out the gradients."""
    network.zero_grad()
    loss.backward()
    return [parameter.grad for parameter in network.parameters()]
