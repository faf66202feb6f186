"""A pause from the time when someone watched. Remedy: none."""

import time

from training import arguments, train

options = arguments(env_calls=2000)


def pause(call):
    time.sleep(0.001)


train(options.env_calls, after=None if options.healthy else pause)
