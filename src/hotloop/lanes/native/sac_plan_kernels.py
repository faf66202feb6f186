"""Indices into what a SAC, TD3 or DDPG update is: `int_plan` (int64), `float_plan` (float64), its lines, its
statistics.

`int_plan` begins with what stands here; behind it lie the plans of actor and critics (`stack_plan_kernels.py`). All
three share one workspace. `float_plan` begins with what every optimizer step reads (`plan_kernels.py`: `MAX_NORM` to
`TAU`).
"""

ROWS = 0  # of a batch, B
OBS_SIZE = 1  # F
ACTIONS = 2  # A
CRITICS = 3  # C
STOCHASTIC = 4  # a squashed normal; otherwise tanh of what the actor says
LEARN_TEMPERATURE = 5
POLICY_DELAY = 6
TARGET_EVERY = 7
NEXT = 8  # column of next_obs, where the actor sees obs and next_obs side by side
LINES = 9  # offset into the workspace: a matrix [LINE_COUNT + A, B] with the critics' stride
ACTOR_PLAN = 10  # where in `int_plan` it starts
CRITICS_PLAN = 11
GROUPS = 12  # three numbers each of actor, critics, temperature: `START`, `STEP`, `SIZE`
NUMBERS = 21


# a group in `int_plan`, and the vectors of one
ACTOR, CRITIC, ALPHA = GROUPS, GROUPS + 3, GROUPS + 6
START, STEP, SIZE = range(3)  # where in `vectors` a group starts, how far apart its vectors lie, how long they are
VALUES, GRADIENT, MEAN, SQUARE, SLOW = range(5)
VECTORS = 5


# float_plan
TEMPERATURE = 5
TARGET_ENTROPY = 6
SLOPE_EPSILON = 7
SMOOTHING = 8
SMOOTHING_CLIP = 9
CRITIC_WEIGHT = 10


# lines
LOG_PROB = 0  # of the actions that the policy drew last
LOWEST = 1  # of all critics' values
TARGET = 2  # what the critics should say
SHARE = 3  # how many critics share the lowest value
NOISE = 4  # [A, B], of the actions drawn last
LINE_COUNT = 4


# rows of the statistics
LOSS, Q_MEAN, ACTOR_LOSS, ENTROPY, TEMPERATURE_LOSS, TEMPERATURE_MEAN, GRADIENT_NORM = range(7)
STATISTICS = 7


# what a stage reports: its loss, one mean beside it, its gradient's norm, and whether its step was made
STAGE_LOSS, STAGE_MEAN, STAGE_NORM, STAGE_MADE = range(4)
REPORT = 4
