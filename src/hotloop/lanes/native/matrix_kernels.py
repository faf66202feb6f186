"""Matrix products and transposes of any size out of the tiles. Matrices are (flat array, offset, stride of a row)."""

from __future__ import annotations

from typing import Any

from hotloop.core.kernels import inline_kernel
from hotloop.lanes.native.tile_kernels import (
    dots_1,
    dots_4,
    slim_1,
    slim_2,
    slim_4,
    slim_main,
    sum_of_squares_whole,
    transpose_square,
    wide_1,
    wide_2,
    wide_4,
    wide_main,
)
from hotloop.lanes.native.unit_kernels import index, real, unit, vector
from hotloop.lanes.native.vector_kernels import LANES, PANEL, TILE_ROWS

_matrix = (vector, index, index)

Array = Any


@inline_kernel
def _wide_panel(c, co, cs, a, ao, ar, ac, b, bo, bs, bias, bias_o, rows, depth, floor, add):
    m = 0
    while m + TILE_ROWS <= rows:
        wide_main(c, co + m * cs, cs, a, ao + m * ar, ar, ac, b, bo, bs, bias, bias_o + m, depth, PANEL, floor, add)
        m += TILE_ROWS
    while m + 4 <= rows:
        wide_4(c, co + m * cs, cs, a, ao + m * ar, ar, ac, b, bo, bs, bias, bias_o + m, depth, PANEL, floor, add)
        m += 4
    if m + 2 <= rows:
        wide_2(c, co + m * cs, cs, a, ao + m * ar, ar, ac, b, bo, bs, bias, bias_o + m, depth, PANEL, floor, add)
        m += 2
    if m < rows:
        wide_1(c, co + m * cs, cs, a, ao + m * ar, ar, ac, b, bo, bs, bias, bias_o + m, depth, PANEL, floor, add)


@inline_kernel
def _slim_panel(c, co, cs, a, ao, ar, ac, b, bo, bs, bias, bias_o, rows, columns, depth, floor, add):
    m = 0
    while m + TILE_ROWS <= rows:
        slim_main(c, co + m * cs, cs, a, ao + m * ar, ar, ac, b, bo, bs, bias, bias_o + m, depth, columns, floor, add)
        m += TILE_ROWS
    while m + 4 <= rows:
        slim_4(c, co + m * cs, cs, a, ao + m * ar, ar, ac, b, bo, bs, bias, bias_o + m, depth, columns, floor, add)
        m += 4
    if m + 2 <= rows:
        slim_2(c, co + m * cs, cs, a, ao + m * ar, ar, ac, b, bo, bs, bias, bias_o + m, depth, columns, floor, add)
        m += 2
    if m < rows:
        slim_1(c, co + m * cs, cs, a, ao + m * ar, ar, ac, b, bo, bs, bias, bias_o + m, depth, columns, floor, add)


@unit(*_matrix, *_matrix, index, *_matrix, vector, index, index, index, index, real, index)
def multiply(c, co, cs, a, ao, ar, ac, b, bo, bs, bias, bias_o, rows, columns, depth, floor, add):
    """C [rows, columns] = max(floor, bias [rows] + A [rows, depth] @ B [depth, columns]); with `add`, C += A @ B + bias.

    Each of c, a, b, bias is a flat float32 array followed by its offset; then the stride of a row, for A the steps of
    a row and of a column (so a transposed A costs nothing). `depth` at least 1.
    """
    n = 0
    while n + PANEL <= columns:
        _wide_panel(c, co + n, cs, a, ao, ar, ac, b, bo + n, bs, bias, bias_o, rows, depth, floor, add)
        n += PANEL
    while n < columns:
        width = min(LANES, columns - n)
        _slim_panel(c, co + n, cs, a, ao, ar, ac, b, bo + n, bs, bias, bias_o, rows, width, depth, floor, add)
        n += LANES


@unit(*_matrix, *_matrix, index, index)
def transpose(target, to, ts, source, so, ss, rows, columns):
    """target [columns, rows] = source [rows, columns] transposed."""
    square_rows, square_columns = rows // LANES * LANES, columns // LANES * LANES
    for m in range(0, square_rows, LANES):
        for n in range(0, square_columns, LANES):
            transpose_square(target, to + n * ts + m, ts, source, so + m * ss + n, ss)
    for m in range(rows):
        for n in range(square_columns if m < square_rows else 0, columns):
            target[to + n * ts + m] = source[so + m * ss + n]


@inline_kernel
def multiply_vector(out, oo, a, ao, x, xo, bias, bias_o, rows, depth):
    """out [rows] = bias + A [rows, depth] @ x: for one row at a time, where a tile would use one lane in sixteen."""
    whole = depth // LANES * LANES
    if whole == 0:
        for m in range(rows):
            out[oo + m] = bias[bias_o + m]
    else:
        m = 0
        while m + 4 <= rows:
            dots_4(out, oo + m, a, ao + m * depth, depth, x, xo, depth, bias, bias_o + m)
            m += 4
        while m < rows:
            dots_1(out, oo + m, a, ao + m * depth, depth, x, xo, depth, bias, bias_o + m)
            m += 1
    if whole < depth:
        for m in range(rows):
            total = out[oo + m]
            for k in range(whole, depth):
                total += a[ao + m * depth + k] * x[xo + k]
            out[oo + m] = total


@inline_kernel
def sum_of_squares(x):
    """Sum of x^2, in float32 lanes."""
    whole = x.size // (4 * LANES) * (4 * LANES)
    total = sum_of_squares_whole(x, 0, whole) if whole > 0 else x.dtype.type(0.0)
    for i in range(whole, x.size):
        total += x[i] * x[i]
    return total
