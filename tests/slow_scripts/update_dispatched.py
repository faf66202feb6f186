"""A JAX model learns operation by operation. Remedy: `jax.jit`."""

import numpy as np
from training import OUTCOME, Learner, arguments, stand_in, train

jax = stand_in("jax")
jnp = jax.numpy
options = arguments(env_calls=1500)


def step(weights, obs, target):
    for _ in range(6):
        error = jnp.dot(obs, weights) - target
        weights = weights - 0.001 * jnp.dot(jnp.transpose(obs), error)
    return weights


step = jax.jit(step) if options.healthy else step


class Foretelling(Learner):
    """Beside the values it learns to foretell rewards."""

    weights = jnp.asarray(np.zeros((4, 1), np.float32))

    def update(self, batch):
        super().update(batch)
        obs, _, reward, _ = (part.numpy() for part in batch)
        self.weights = step(self.weights, jnp.asarray(obs), jnp.asarray(reward[:, None]))


learner = Foretelling()
train(options.env_calls, learner=learner, updates_every=1)
OUTCOME["weights"] = np.asarray(learner.weights).copy()
