"""Matrix products and transposes of any size out of the tiles.

A matrix is a tuple: the flat float32 array it lies in, its offset there, and the stride of a row.
"""

from __future__ import annotations

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native.tile_kernels import (
    dots_1,
    dots_4,
    sum_of_squares_whole,
    tile_1,
    tile_2,
    tile_4,
    tile_main,
    transpose_square,
)
from hotloop.lanes.native.unit_kernels import index, matrix, place, real, sizes, stepped_matrix, unit
from hotloop.lanes.native.vector_kernels import HALF, LANES, PANEL, TILE_ROWS

Matrix = tuple[Array, int, int]
SteppedMatrix = tuple[Array, int, int, int]
Place = tuple[Array, int]
Sizes = tuple[int, int, int]


@inline_kernel
def padded_columns(columns: int) -> int:
    """As many as vectors have; what is computed beyond `columns` is never read."""
    return (columns + HALF - 1) // HALF * HALF


@unit(matrix, stepped_matrix, matrix, place, sizes, real, index)
def multiply(c: Matrix, a: SteppedMatrix, b: Matrix, bias: Place, sizes: Sizes, floor: float, add: int) -> None:
    """C = max(floor, bias + A @ B), or, with `add`, C += A @ B + bias.

    `sizes` are C's rows, C's columns and the depth (at least 1); one bias per row. A's tuple holds the steps of a row
    and of a column, so that a transposed A costs nothing.
    """
    (c_data, c_at, c_step), (b_data, b_at, b_step), (rows, columns, depth) = c, b, sizes
    n = 0
    while n < columns:
        width = PANEL if n + PANEL <= columns else min(LANES, columns - n)
        _panel((c_data, c_at + n, c_step), a, (b_data, b_at + n, b_step), bias, (rows, width, depth), floor, add)
        n += width


@inline_kernel
def _panel(c: Matrix, a: SteppedMatrix, b: Matrix, bias: Place, sizes: Sizes, floor: float, add: int) -> None:
    (cd, co, cs), (ad, ao, ar, ac), (bd, bo, bs), (bias_d, bias_o), (rows, columns, depth) = c, a, b, bias, sizes
    m = 0
    while m + TILE_ROWS <= rows:
        tile_main(
            cd, co + m * cs, cs, ad, ao + m * ar, ar, ac, bd, bo, bs, bias_d, bias_o + m, depth, columns, floor, add
        )
        m += TILE_ROWS
    while m + 4 <= rows:
        tile_4(cd, co + m * cs, cs, ad, ao + m * ar, ar, ac, bd, bo, bs, bias_d, bias_o + m, depth, columns, floor, add)
        m += 4
    if m + 2 <= rows:
        tile_2(cd, co + m * cs, cs, ad, ao + m * ar, ar, ac, bd, bo, bs, bias_d, bias_o + m, depth, columns, floor, add)
        m += 2
    if m < rows:
        tile_1(cd, co + m * cs, cs, ad, ao + m * ar, ar, ac, bd, bo, bs, bias_d, bias_o + m, depth, columns, floor, add)


@unit(matrix, matrix, index, index)
def transpose(target: Matrix, source: Matrix, rows: int, columns: int) -> None:
    """target [columns, rows] = source [rows, columns] transposed."""
    (td, to, ts), (sd, so, ss) = target, source
    square_rows, square_columns = rows // LANES * LANES, columns // LANES * LANES
    for m in range(0, square_rows, LANES):
        for n in range(0, square_columns, LANES):
            transpose_square(td, to + n * ts + m, ts, sd, so + m * ss + n, ss)
    for m in range(rows):
        for n in range(square_columns if m < square_rows else 0, columns):
            td[to + n * ts + m] = sd[so + m * ss + n]


@inline_kernel
def multiply_vector(out: Place, a: Place, x: Place, bias: Place, rows: int, depth: int) -> None:
    """out [rows] = bias + A [rows, depth] @ x: for one row at a time, where a tile would use one lane in sixteen."""
    (od, oo), (ad, ao), (xd, xo), (bias_d, bias_o) = out, a, x, bias
    whole = depth // LANES * LANES
    m = 0
    while whole > 0 and m + 4 <= rows:
        dots_4(od, oo + m, ad, ao + m * depth, depth, xd, xo, depth, bias_d, bias_o + m)
        m += 4
    while whole > 0 and m < rows:
        dots_1(od, oo + m, ad, ao + m * depth, depth, xd, xo, depth, bias_d, bias_o + m)
        m += 1
    for m in range(rows if whole < depth else 0):
        total = od[oo + m] if whole > 0 else bias_d[bias_o + m]
        for k in range(whole, depth):
            total += ad[ao + m * depth + k] * xd[xo + k]
        od[oo + m] = total


@inline_kernel
def sum_of_squares(x: Array) -> float:
    """Sum of x^2, in float32 lanes."""
    whole = x.size // (4 * LANES) * (4 * LANES)
    total = sum_of_squares_whole(x, 0, whole) if whole > 0 else x.dtype.type(0.0)
    for i in range(whole, x.size):
        total += x[i] * x[i]
    return total
