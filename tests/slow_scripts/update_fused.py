"""Adam goes through its parameters one by one. Remedy: fused."""

import torch
from torch import nn
from training import Learner, arguments, train

options = arguments(env_calls=800)
layers = [layer for _ in range(6) for layer in (nn.Linear(32, 32), nn.ReLU())]
net = nn.Sequential(nn.Linear(4, 32), *layers, nn.Linear(32, 2))
optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, **({"fused": True} if options.healthy else {}))
train(options.env_calls, learner=Learner(net, optimiser), updates_every=2)
