"""Garbage is collected by hand every twenty env calls. Remedy: Python does it."""

import gc

from training import arguments, train

options = arguments(env_calls=400)


def collect(call):
    if call % 20 == 0:
        gc.collect()


train(options.env_calls, after=None if options.healthy else collect)
