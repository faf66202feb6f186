"""Anomaly detection is left on after a search for NaN. Remedy: switched off."""

import torch
from training import arguments, train

options = arguments(env_calls=1500)
if not options.healthy:
    torch.autograd.set_detect_anomaly(True)
train(options.env_calls, updates_every=2)
