"""A rate is printed that contains a slow beginning. Remedy: what is slow at first is done before the clock starts."""

import numpy as np
from ward import Learner, arguments, train


class Lazy(Learner):
    table = None

    def act(self, obs):
        if self.table is None:
            self.build()
        return super().act(obs)

    def build(self):
        self.table = sum(np.linalg.svd(np.random.default_rng(i).normal(size=(120, 120)))[1] for i in range(60))

    def warm_up(self):
        super().warm_up()
        self.table = self.table if options.healthy else None


options = arguments(env_calls=4000)
train(options.env_calls, learner=Lazy())
