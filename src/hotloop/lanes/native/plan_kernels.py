"""Where everything lies, as one int64 vector that kernels read: one argument instead of thirty.

The names are indices into it. From `TABLE` on follow rows of `ROW` numbers, one per linear layer: the torso's, then
the head's (dueling: value, then advantage).
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
