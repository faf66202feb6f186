"""Indices into the plan of a network, the int64 vector `numbers`, and into the float64 vector `constants`.

`layout.py` draws the plan and fills it. Offsets are in floats: into the parameters (and whatever is shaped like them)
or into the workspace.
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
PARAMETERS = 13  # P
BRANCHES = 14  # where in this vector the branches' section starts; 0: the torso sees the observations themselves
# offsets into the workspace
ZEROS = 15  # as many as any matrix has rows
ONES = 16  # [B]
INPUT = 17  # observations [F, columns]
TORSO_INPUT = 18  # the same, or what branches make of them
VALUES_EVEN = 19  # activations of layers 0, 2, ... [features, columns]
VALUES_ODD = 20
HEAD_ONLINE = 21  # [outputs, columns]
HEAD_TARGET = 22
HEAD_GRADIENT = 23
HEAD_ROWS = 24  # the same batch-major [B, outputs]
HEAD_STRIDE = 25
GRADIENT_EVEN = 26  # by activations [B, features]
GRADIENT_ODD = 27
SCRATCH = 28  # of the loss [A + 4 Z + 4, columns]
Q_ROWS = 29  # values of the observations acted on, batch-major [B, A]
TABLE = 30


# a row of a table: one linear layer
ROW = 7
FAN_IN = 0
FAN_OUT = 1
WEIGHT = 2  # offset into the parameters, [out, in] as nn.Linear has it
BIAS = 3
KEPT = 4  # activations batch-major [B, out], offset into the workspace
STRIDE = 5  # of them, and of gradients by them
FIRST_OUTPUT = 6  # heads: first row in a head buffer


# the branches' section, counted from its start
NUM_BRANCHES = 0
WIDTH = 1  # every branch ends with so many units
ATTENTION = 2  # units of the layer that scores them
INNER_WEIGHT = 3  # offsets into the parameters
INNER_BIAS = 4
SCORE_WEIGHT = 5
SCORE_BIAS = 6
# offsets into the workspace
BRANCH_EVEN = 7  # activations of a branch [features, columns]
BRANCH_ODD = 8
INNER = 9  # what attention makes of each branch, feature-major [branches * attention, columns]
SHARES = 10  # of each branch in the sum [branches, columns]
KEPT_INPUT = 11  # what goes into the torso, batch-major [B, (branches + 1) * width]
KEPT_INNER = 12  # batch-major [branches, B, attention]
INPUT_GRADIENT = 13  # by what goes into the torso [B, (branches + 1) * width]
INNER_GRADIENT = 14  # [B, attention]
BRANCH_GRADIENT_EVEN = 15  # by activations of a branch [B, features]
BRANCH_GRADIENT_ODD = 16
SCORE_GRADIENT = 17  # [branches, B]
BRANCH_TABLE = 18


# a row of the branches' table begins like any layer's; `KEPT` is [B, copies * out]
BRANCH_ROW = 10
COPIES = 6  # the same layer for so many rows of a table
OWN_BRANCH = 7  # the number of its branch
FIRST_FEATURE = 8  # of the observation, where it is the first layer of its branch; -1 elsewhere
IS_LAST = 9  # of its branch


# `constants`
MAX_NORM = 0
BETA1 = 1
BETA2 = 2
EPSILON = 3
TAU = 4
V_MIN = 5
V_MAX = 6
