"""Indices into the plan of a stack: C multilayer networks of the same sizes that see the same inputs.

Everything but what says otherwise lies feature-major, [features, columns], with the features of all copies below each
other; offsets are in floats, into the parameters or into the workspace.
"""

LAYERS = 0
COPIES = 1  # C
ACTIVATION = 2
ROWS = 3  # of a batch, B
STRIDE = 4  # of feature-major matrices
PARAMETERS = 5  # P
# offsets into the workspace
ZEROS = 6  # as many as any matrix has rows
ONES = 7  # [B]
INPUT = 8  # [in, columns]
INPUT_ROWS = 9  # the same batch-major [B, in], for weight gradients; -1: the first layer does without
ACROSS = 10  # a narrow first layer's weight gradient, transposed [in, C * out]
INPUT_GRADIENT = 11  # [in - FIRST_WANTED, columns]
FIRST_WANTED = 12  # the input's gradient is computed from this feature on
TABLE = 13


# a row of the table: one linear layer of all copies
ROW = 8
FAN_IN = 0
FAN_OUT = 1
WEIGHT = 2  # offset into the parameters, [C, out, in]
BIAS = 3  # [C, out]
VALUES = 4  # outputs after the activation [C * out, columns]
GRADIENT = 5  # by them; every second layer shares the place
KEPT = 6  # values batch-major [B, C * out], for the next layer's weight gradient; -1: it does without
KEPT_STRIDE = 7
