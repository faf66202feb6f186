"""Indices into what an actor-critic update is: `int_plan` (int64), `float_plan` (float64), and the rows of its
statistics.

The two networks have plans of their own (`plan_kernels.py`); when the torso is shared, one plan stands for both.
"""

# int_plan
SHARED = 0  # one torso for both; its head has the value first, then the policy's outputs
POLICY_PARAMETERS = 1  # of the policy's network; the value's follow, then the log stds
VALUE_PARAMETERS = 2  # 0 when shared
PARAMETERS = 3  # all
OUTPUTS = 4
CONTINUOUS = 5
SQUASHED = 6
PLAIN = 7  # A2C's loss
NORMALIZE = 8
ROWS = 9  # of a minibatch
CHOICES = 10  # how many
COUNTS = 11  # their sizes from here on


# float_plan
CLIP = 0
VALUE_CLIP = 1
VF_COEF = 2
ENT_COEF = 3
KL_STOP = 4


# rows of the statistics
LOSS, POLICY_LOSS, VALUE_LOSS, ENTROPY, KL, CLIP_FRACTION, GRADIENT_NORM = range(7)
