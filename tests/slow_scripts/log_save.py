"""The network is saved every ten env calls. Remedy: every thousand."""

import tempfile

import torch
from training import Learner, arguments, train

options = arguments(env_calls=2000)
learner = Learner()
folder = tempfile.mkdtemp()


def save(call):
    if call % (1_000 if options.healthy else 10) == 0:
        torch.save(learner.net.state_dict(), f"{folder}/latest.pt")


train(options.env_calls, learner=learner, after=save)
