"""A kernel whose last bits tell how this machine's compiler and vector unit round."""

import numpy as np

from hotloop.core.kernels import kernel


@kernel
def softplus_sum(values):
    total = 0.0
    for value in values.flat:
        total += np.log1p(np.exp(value))
    return total
