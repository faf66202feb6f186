"""Every env step is printed. Remedy: every thousandth."""

import sys

from training import Drift, arguments, train

options = arguments(env_calls=8000)
env = Drift(count=1)


def report(call):
    if not options.healthy or call % 1000 == 0:
        for column in range(4):
            print(f"env step {call}: column {column} is {env.state[0, column]:.4f}", file=sys.stderr, flush=True)


train(options.env_calls, env=env, updates_every=64, after=report)
