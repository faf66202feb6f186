"""Sixteen updates of 64 rows follow every step of 64 envs. Remedy: a quarter of them."""

from training import Learner, arguments, train


class Eager(Learner):
    def update(self, batch):
        for _ in range(4 if options.healthy else 16):
            super().update(batch)


options = arguments(env_calls=100)
train(options.env_calls, learner=Eager(), updates_every=1, batch_size=64)
