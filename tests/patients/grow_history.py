"""All returns so far are averaged after every env call. Remedy: the last hundred."""

from collections import deque

import numpy as np
from ward import Drift, arguments, train

options = arguments(env_calls=3000)
env = Drift(count=8)
history = deque(maxlen=100) if options.healthy else []


def report(call):
    history.extend(env.state[:, 0].tolist())
    env.mean = np.mean(history)


train(options.env_calls, env=env, after=report, updates_every=32)
