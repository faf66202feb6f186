"""A rate is printed that contains a slow beginning. Remedy: what is slow at first is done before the clock starts."""

from training import Learner, arguments, train


class Lazy(Learner):
    table, acts = None, 0

    def act(self, obs):
        self.acts += 1
        if self.table is None and self.acts == 20:
            self.build()
        return super().act(obs)

    def build(self):
        self.table = sum(i * i for i in range(15_000_000))

    def warm_up(self):
        super().warm_up()
        if options.healthy:
            self.build()


options = arguments(env_calls=4000)
train(options.env_calls, learner=Lazy())
