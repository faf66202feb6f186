"""All returns so far are averaged after every env call. Remedy: running sums."""

import numpy as np
from training import OUTCOME, Drift, arguments, train

options = arguments(env_calls=3000)
env = Drift(count=8)
history, running = [], [0.0, 0]


def report(call):
    values = env.state[:, 0].tolist()
    if options.healthy:
        running[:] = running[0] + sum(values), running[1] + len(values)
        env.mean = running[0] / running[1]
    else:
        history.extend(values)
        env.mean = np.mean(history)


train(options.env_calls, env=env, after=report, updates_every=32)
OUTCOME["mean"] = env.mean
