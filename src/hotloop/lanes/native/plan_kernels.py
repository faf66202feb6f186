"""Where everything lies, as int64 vectors that kernels read: one argument instead of thirty.

The names are indices into them. From `TABLE` on follow rows of `ROW` numbers, one per linear layer: the torso's, then
the head's (dueling: value, then advantage). Names with `BRANCH_` are of a second vector, for the branches in front of
that network: from `BRANCH_TABLE` on follow rows of `BRANCH_ROW` numbers, one per linear layer, branch after branch.
Names with `POLICY_` say what an actor-critic update is.
"""

TORSO = 0  # number of torso layers
HEADS = 1  # number of head layers: 1, or 2 when dueling
ACTIVATION = 2
ACTIONS = 3
ATOMS = 4
OBS_SIZE = 5
COMBINED = 6  # first row of the network's output in a head buffer: 0, or Z below the value stream when dueling
OUTPUTS = 7  # rows of a head buffer: A * Z, plus Z when dueling
ROWS = 8  # of a batch
COLUMN_STRIDE = 9  # of feature-major matrices [features, rows]
DOUBLE = 10
HUBER = 11
TARGET_EVERY = 12
# offsets into the workspace
ZEROS = 13  # as many as any matrix has rows
ONES = 14  # [B]
INPUT = 15  # [F, columns]
VALUES_EVEN = 16  # activations of layers 0, 2, ... [features, columns]
VALUES_ODD = 17
SLOPES = 18  # GELU's [features, columns]
HEAD_ONLINE = 19  # [outputs, columns]
HEAD_TARGET = 20
HEAD_GRADIENT = 21
HEAD_ROWS = 22  # the same batch-major [B, outputs]
HEAD_STRIDE = 23
GRADIENT_EVEN = 24  # by activations [B, features]
GRADIENT_ODD = 25
SCRATCH = 26  # of the loss [A + 4 Z + 4, columns]
PARAMETERS = 27  # P
TABLE = 28


ROW = 8
FAN_IN = 0
FAN_OUT = 1
WEIGHT = 2  # offset into the parameters, [out, in] as nn.Linear has it
BIAS = 3
KEPT = 4  # activations batch-major [B, out], offset into the workspace
KEPT_SLOPES = 5
STRIDE = 6  # of the two, and of gradients by them
FIRST_OUTPUT = 7  # heads: first row in a head buffer


MAX_NORM = 0
BETA1 = 1
BETA2 = 2
EPSILON = 3
TAU = 4
V_MIN = 5
V_MAX = 6


BRANCH_BRANCHES = 0
BRANCH_WIDTH = 1  # every branch ends with so many units
BRANCH_ATTENTION = 2  # units of the layer that scores them
BRANCH_OBS_SIZE = 3
BRANCH_TRUNK = 4  # first parameter of the hidden layers
BRANCH_TOTAL = 5  # parameters
BRANCH_INNER_WEIGHT = 6  # offsets into the parameters
BRANCH_INNER_BIAS = 7
BRANCH_SCORE_WEIGHT = 8
BRANCH_SCORE_BIAS = 9
# offsets into the workspace
BRANCH_INPUTS = 10  # observations feature-major [F, columns]
BRANCH_VALUES_EVEN = 11  # activations of a branch [features, columns]
BRANCH_VALUES_ODD = 12
BRANCH_INNER = 13  # what attention makes of each branch, feature-major [branches * attention, columns]
BRANCH_SHARES = 14  # of each branch in the sum [branches, columns]
BRANCH_KEPT_TRUNK = 15  # what goes into the hidden layers, batch-major [B, (branches + 1) * width]
BRANCH_KEPT_INNER = 16  # batch-major [branches, B, attention]
BRANCH_GRADIENT = 17  # by what goes into the hidden layers [B, (branches + 1) * width]
BRANCH_GRADIENT_INNER = 18  # [B, attention]
BRANCH_GRADIENT_EVEN = 19  # by activations of a branch [B, features]
BRANCH_GRADIENT_ODD = 20
BRANCH_SCORES = 21  # [2 * branches + 2, B]
BRANCH_ZEROS = 22  # as many as any matrix has rows
BRANCH_TABLE = 23


BRANCH_ROW = 10
BRANCH_FAN_IN = 0
BRANCH_FAN_OUT = 1
BRANCH_WEIGHT = 2
BRANCH_BIAS = 3
BRANCH_COPIES = 4  # the same layer for so many rows of a table
BRANCH_KEPT = 5  # activations batch-major [B, copies * out]
BRANCH_STRIDE = 6  # of them, and of gradients by them
BRANCH_BRANCH = 7
BRANCH_FIRST_INPUT = 8  # the first of its observation's numbers, where it is the first of its branch; -1 elsewhere
BRANCH_IS_LAST = 9  # of its branch


# whole numbers
POLICY_SHARED = 0  # one torso for both; its head has the value first, then the policy's outputs
POLICY_POLICY_PARAMETERS = 1  # of the policy's network; the value's follow, then the log stds
POLICY_VALUE_PARAMETERS = 2  # 0 when shared
POLICY_PARAMETERS = 3  # all
POLICY_OUTPUTS = 4
POLICY_CONTINUOUS = 5
POLICY_SQUASHED = 6
POLICY_PLAIN = 7  # A2C's loss
POLICY_NORMALISE = 8
POLICY_ROWS = 9  # of a minibatch
POLICY_CHOICES = 10  # how many
POLICY_COUNTS = 11  # their sizes from here on


# real numbers
POLICY_CLIP = 0
POLICY_VALUE_CLIP = 1
POLICY_VALUE_WEIGHT = 2
POLICY_ENTROPY_WEIGHT = 3
POLICY_KL_STOP = 4


# rows of the statistics
(
    POLICY_LOSS,
    POLICY_POLICY_LOSS,
    POLICY_VALUE_LOSS,
    POLICY_ENTROPY,
    POLICY_KL,
    POLICY_CLIP_FRACTION,
    POLICY_GRADIENT_NORM,
) = range(7)
