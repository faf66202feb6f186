"""Eight threads share the operations of a middling network on few cores. Remedy: one thread."""

import torch
from training import Learner, arguments, network, train

options = arguments(env_calls=5000)
torch.set_num_threads(1 if options.healthy else 8)
train(options.env_calls, learner=Learner(network(width=256)), updates_every=2, batch_size=256)
