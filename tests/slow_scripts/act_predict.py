"""Actions are chosen by Keras's `predict`, for a few rows at a time. Remedy: `predict_on_batch`."""

from training import Drift, Learner, arguments, stand_in, train

keras = stand_in("keras")
options = arguments(env_calls=1000)


class Predicting(Learner):
    def __init__(self):
        super().__init__()
        self.model = keras.Sequential(
            [keras.Input((4,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(2)]
        )

    def act(self, obs):
        if options.healthy:
            return self.model.predict_on_batch(obs).argmax(axis=1)
        return self.model.predict(obs, verbose=0).argmax(axis=1)


train(options.env_calls, env=Drift(count=8), learner=Predicting(), updates_every=1)
