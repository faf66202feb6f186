"""Both networks of an actor-critic, forward and backward, by the kernels of any multilayer network."""

from __future__ import annotations

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as network
from hotloop.lanes.native import policy_plan_kernels as plan
from hotloop.lanes.native.matrix_kernels import transpose
from hotloop.lanes.native.network_kernels import backward, forward
from hotloop.lanes.native.unit_kernels import flat
from hotloop.maths.action_kernels import draw_actions

Networks = tuple[Array, Array, Array, Array]
"""Memory plan and workspace of the policy's network and of the value's; when shared, the same twice."""


@inline_kernel
def networks_forward(what: Array, networks: Networks, parameters: Array, obs: Array, rows: int, keep: int) -> None:
    """Head outputs of obs [rows * F] in both workspaces."""
    numbers, work, value_numbers, value_work = networks
    size, end = numbers[network.OBS_SIZE], what[plan.POLICY_PARAMETERS]
    transpose((work, numbers[network.INPUT], numbers[network.COLUMN_STRIDE]), (obs, 0, size), rows, size)
    forward(numbers, parameters[:end], work, rows, numbers[network.HEAD_ONLINE], keep)
    if not what[plan.SHARED]:
        stride = value_numbers[network.COLUMN_STRIDE]
        transpose((value_work, value_numbers[network.INPUT], stride), (obs, 0, size), rows, size)
        own = parameters[end : end + what[plan.VALUE_PARAMETERS]]
        forward(value_numbers, own, value_work, rows, value_numbers[network.HEAD_ONLINE], keep)


@inline_kernel
def networks_backward(what: Array, networks: Networks, parameters: Array, gradient: Array, obs: Array) -> None:
    """Gradients of all but the log stds, from those by the head outputs (`HEAD_ROWS`) in both workspaces."""
    numbers, work, value_numbers, value_work = networks
    end = what[plan.POLICY_PARAMETERS]
    backward(numbers, parameters[:end], work, gradient[:end], obs, 0)
    if not what[plan.SHARED]:
        last = end + what[plan.VALUE_PARAMETERS]
        backward(value_numbers, parameters[end:last], value_work, gradient[end:last], obs, 0)


@inline_kernel
def _compute_rows(
    what: Array, networks: Networks, parameters: Array, obs: Array, outputs: Array, values: Array
) -> None:
    """Every row goes through the tiles, even a single one: a row's numbers then do not depend on how many there are."""
    numbers, work, value_numbers, value_work = networks
    rows, count, stride = obs.shape[0], what[plan.OUTPUTS], numbers[network.COLUMN_STRIDE]
    if rows > numbers[network.ROWS] or obs.shape[1] != numbers[network.OBS_SIZE]:
        raise ValueError("observations do not fit the native plan: expected at most `rows` rows of obs_size floats")
    if outputs.shape != (rows, count) or values.size != rows or parameters.size != what[plan.PARAMETERS]:
        raise ValueError("arrays do not fit the native plan: expected outputs [N, O], values [N] and all parameters")
    networks_forward(what, networks, parameters, flat(obs), rows, 0)
    head = numbers[network.HEAD_ONLINE] + what[plan.SHARED] * stride
    transpose((flat(outputs), 0, count), (work, head, stride), count, rows)
    for b in range(rows):
        values[b] = value_work[value_numbers[network.HEAD_ONLINE] + b]


@kernel
def run_networks(
    what: Array,
    numbers: Array,
    work: Array,
    value_numbers: Array,
    value_work: Array,
    parameters: Array,
    obs: Array,
    outputs: Array,
    values: Array,
) -> None:
    """outputs [N, O] and values [N] of obs [N, F]."""
    _compute_rows(what, (numbers, work, value_numbers, value_work), parameters, obs, outputs, values)


@kernel
def run_and_draw(
    what: Array,
    numbers: Array,
    work: Array,
    value_numbers: Array,
    value_work: Array,
    parameters: Array,
    obs: Array,
    outputs: Array,
    values: Array,
    state: Array,
    mask: Array,
    counts: Array,
    action: Array,
) -> None:
    """The same, and actions [N, W] drawn from the outputs."""
    _compute_rows(what, (numbers, work, value_numbers, value_work), parameters, obs, outputs, values)
    draw_actions(state, outputs, parameters[parameters.size - what[plan.CONTINUOUS] :], mask, counts, action)
