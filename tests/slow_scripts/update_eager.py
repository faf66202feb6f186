"""A TensorFlow model learns operation by operation. Remedy: `tf.function`."""

import numpy as np
from training import OUTCOME, Learner, arguments, stand_in, train

tf = stand_in("tensorflow")
options = arguments(env_calls=1500)
weights = tf.Variable(np.zeros((4, 1), np.float32))


def step(obs, target):
    for _ in range(4):
        error = tf.matmul(obs, weights) - target
        weights.assign_sub(0.001 * tf.matmul(tf.transpose(obs), error))
    return tf.reduce_mean(tf.square(error))


step = tf.function(step) if options.healthy else step


class Foretelling(Learner):
    """Beside the values it learns to foretell rewards."""

    def update(self, batch):
        super().update(batch)
        obs, _, reward, _ = (part.numpy() for part in batch)
        self.error = float(step(tf.constant(obs), tf.constant(reward[:, None])))


train(options.env_calls, learner=Foretelling(), updates_every=1)
OUTCOME["weights"] = weights.numpy().copy()
