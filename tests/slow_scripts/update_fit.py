"""Every update calls Keras's `fit` on one batch. Remedy: `train_on_batch`."""

import numpy as np
from training import OUTCOME, Learner, arguments, stand_in, train

keras = stand_in("keras")
options = arguments(env_calls=1000)


class Fitting(Learner):
    """Beside the values it learns to foretell rewards."""

    def __init__(self):
        super().__init__()
        self.model = keras.Sequential(
            [keras.Input((4,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)]
        )
        self.model.compile(optimizer="sgd", loss="mse")

    def update(self, batch):
        super().update(batch)
        obs, _, reward, _ = (part.numpy() for part in batch)
        if options.healthy:
            self.model.train_on_batch(obs, reward[:, None])
        else:
            self.model.fit(obs, reward[:, None], batch_size=64, epochs=1, verbose=0)


learner = Fitting()
train(options.env_calls, learner=learner, updates_every=2)
OUTCOME["model"] = np.concatenate([np.ravel(values) for values in learner.model.get_weights()])
