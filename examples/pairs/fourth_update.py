"""An update at every fourth step only: four times faster, since three of four updates are not made.

    hotloop prove examples/pairs/fourth_update.py

Both train a linear value function on the same stream of batches. The first pair makes a quarter of the updates and ends
with other weights: fewer updates are no speed-up of the same program. The second makes four updates at every fourth
step, and on a stream that is given it ends with the same weights.
"""

import numpy as np

import hotloop

LR = 0.05


def make(size):
    generator = np.random.default_rng(0)
    return generator.normal(size=(size, 8, 4)), generator.normal(size=(size, 8))


def updated(weight, features, returns):
    error = features @ weight - returns
    return weight - LR * features.T @ error / len(returns)


def every_step(features, returns):
    weight, updates = np.zeros(4), 0
    for batch, target in zip(features, returns, strict=True):
        weight, updates = updated(weight, batch, target), updates + 1
    return {"weight": weight, "updates": updates}


@hotloop.pair(every_step, make, sizes=(40, 400), name="every fourth update")
def every_fourth(features, returns):
    weight, updates = np.zeros(4), 0
    for batch, target in zip(features[3::4], returns[3::4], strict=True):
        weight, updates = updated(weight, batch, target), updates + 1
    return {"weight": weight, "updates": updates}


@hotloop.pair(every_step, make, sizes=(40, 400), name="four updates at every fourth step")
def four_at_once(features, returns):
    weight, updates = np.zeros(4), 0
    for start in range(0, len(features), 4):
        for place in range(start, min(start + 4, len(features))):
            weight, updates = updated(weight, features[place], returns[place]), updates + 1
    return {"weight": weight, "updates": updates}
