"""Where the branches of a network lie, as one int64 vector beside the plan of its trunk (`plan_kernels`).

The names are indices into it. From `TABLE` on follow rows of `ROW` numbers, one per linear layer of the branches,
branch after branch.
"""

BRANCHES = 0
WIDTH = 1  # every branch ends with so many units
ATTENTION = 2  # units of the layer that scores them
OBS_SIZE = 3
TRUNK = 4  # first parameter of the hidden layers
TOTAL = 5  # parameters
INNER_WEIGHT = 6  # offsets into the parameters
INNER_BIAS = 7
SCORE_WEIGHT = 8
SCORE_BIAS = 9
# offsets into the workspace
INPUTS = 10  # observations feature-major [F, columns]
VALUES_EVEN = 11  # activations of a branch [features, columns]
VALUES_ODD = 12
INNER = 13  # what attention makes of each branch, feature-major [branches * attention, columns]
SHARES = 14  # of each branch in the sum [branches, columns]
KEPT_TRUNK = 15  # what goes into the hidden layers, batch-major [B, (branches + 1) * width]
KEPT_INNER = 16  # batch-major [branches, B, attention]
GRADIENT = 17  # by what goes into the hidden layers [B, (branches + 1) * width]
GRADIENT_INNER = 18  # [B, attention]
GRADIENT_EVEN = 19  # by activations of a branch [B, features]
GRADIENT_ODD = 20
SCORES = 21  # [2 * branches + 2, B]
ZEROS = 22  # as many as any matrix has rows
TABLE = 23

ROW = 10
FAN_IN = 0
FAN_OUT = 1
WEIGHT = 2
BIAS = 3
COPIES = 4  # the same layer for so many rows of a table
KEPT = 5  # activations batch-major [B, copies * out]
STRIDE = 6  # of them, and of gradients by them
BRANCH = 7
FIRST_INPUT = 8  # the first of its observation's numbers, where it is the first of its branch; -1 elsewhere
IS_LAST = 9  # of its branch
