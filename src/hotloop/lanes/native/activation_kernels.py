"""Activations and their slopes over flat float32 arrays, in loops that vectorize.

The library's `exp` and `tanh` are called element by element, so they are polynomials here (our own minimax fits).
Largest relative errors measured: exp 8.1e-8 (between -87 and 88), tanh 3.4e-7. NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native.unit_kernels import index, intrinsic, unit, vector

Float: Any = np.float32
RELU, TANH, SELU, LEAKY_RELU = range(4)
CODES = {"relu": RELU, "tanh": TANH, "selu": SELU, "leaky_relu": LEAKY_RELU}
LEAK = Float(0.01)
SELU_SCALE = Float(1.0507009873554804934193349852946)
SELU_ALPHA = Float(1.6732632423543772848170429916717)
_SELU_FLOOR = Float(1.0507009873554804934193349852946 * 1.6732632423543772848170429916717)


@intrinsic
def _bits_of(typing_context: Any, value: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], ir.IntType(32))

    return types.int32(types.float32), lower


@intrinsic
def _float_of(typing_context: Any, bits: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(builder.trunc(values[0], ir.IntType(32)), ir.FloatType())

    return types.float32(types.int64), lower


@inline_kernel
def exp(x: float) -> float:
    """e^x = 2^n e^r with n the nearest integer to x / log 2; held between e^-87.3 and e^88.3, never 0 or infinite."""
    x = Float(-87.3) if x < Float(-87.3) else x
    x = Float(88.3) if x > Float(88.3) else x
    shifted = x * Float(1.4426950408889634) + Float(12582912.0)  # 1.5 * 2^23: rounds, and leaves n in the low bits
    n = shifted - Float(12582912.0)
    r = (x - n * Float(0.693359375)) + n * Float(2.12194440e-4)  # log 2 in two parts
    p = Float(0.0083687806) + r * Float(0.0013814465)
    p = Float(0.041668394) + r * p
    p = Float(0.1666652) + r * p
    p = Float(0.49999993) + r * p
    return (Float(1.0) + (r + r * r * p)) * _float_of((_bits_of(shifted) + 127) << 23)


@inline_kernel
def tanh(x: float) -> float:
    """x P(x^2) / Q(x^2) up to 9, where it is 1: half the operations of the way by exp."""
    x = Float(-9.0) if x < Float(-9.0) else x
    x = Float(9.0) if x > Float(9.0) else x
    s = x * x
    p = Float(2.0661248e-05) + s * Float(1.3419804e-08)
    p = Float(0.0034989952) + s * p
    p = Float(0.1338398) + s * p
    p = Float(1.0) + s * p
    q = Float(0.0003291037) + s * Float(7.8047213e-07)
    q = Float(0.025890203) + s * q
    q = Float(0.46717301) + s * q
    q = Float(1.0) + s * q
    y = x * p / q
    y = Float(-1.0) if y < Float(-1.0) else y
    return Float(1.0) if y > Float(1.0) else y


@inline_kernel
def _apply_tanh(x: Array) -> None:
    for i in range(x.size):
        x[i] = tanh(x[i])


@inline_kernel
def _apply_selu(x: Array) -> None:
    for i in range(x.size):
        below = _SELU_FLOOR * (exp(x[i]) - Float(1.0))
        x[i] = SELU_SCALE * x[i] if x[i] > Float(0.0) else below


@inline_kernel
def _apply_leaky_relu(x: Array) -> None:
    for i in range(x.size):
        x[i] = x[i] if x[i] > Float(0.0) else LEAK * x[i]


@inline_kernel
def _apply_relu(x: Array) -> None:
    for i in range(x.size):
        x[i] = Float(0.0) if x[i] < Float(0.0) else x[i]


@unit(index, vector)
def activate(code: int, x: Array) -> None:
    """x = f(x) in place."""
    if code == RELU:
        _apply_relu(x)
    elif code == TANH:
        _apply_tanh(x)
    elif code == SELU:
        _apply_selu(x)
    elif code == LEAKY_RELU:
        _apply_leaky_relu(x)


@inline_kernel
def _slope_relu(gradient: Array, y: Array) -> None:
    for i in range(gradient.size):
        gradient[i] = gradient[i] if y[i] > Float(0.0) else Float(0.0)


@inline_kernel
def _slope_tanh(gradient: Array, y: Array) -> None:
    for i in range(gradient.size):
        gradient[i] *= Float(1.0) - y[i] * y[i]


@inline_kernel
def _slope_selu(gradient: Array, y: Array) -> None:
    for i in range(gradient.size):
        gradient[i] *= SELU_SCALE if y[i] > Float(0.0) else y[i] + _SELU_FLOOR


@inline_kernel
def _slope_leaky_relu(gradient: Array, y: Array) -> None:
    for i in range(gradient.size):
        gradient[i] *= Float(1.0) if y[i] > Float(0.0) else LEAK


@unit(index, vector, vector)
def multiply_by_slope(code: int, gradient: Array, y: Array) -> None:
    """gradient *= f'(x), from the activation's value y."""
    if code == RELU:
        _slope_relu(gradient, y)
    elif code == TANH:
        _slope_tanh(gradient, y)
    elif code == SELU:
        _slope_selu(gradient, y)
    elif code == LEAKY_RELU:
        _slope_leaky_relu(gradient, y)
