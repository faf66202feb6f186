"""Matrix products and transposes of any size out of the tiles.

A matrix is a tuple: the flat float32 array it lies in, its offset there, and the stride of a row.

The tiles of the native lane's matrix products, one LLVM function per height.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native.unit_kernels import index, matrix, place, real, sizes, stepped_matrix, unit
from hotloop.lanes.native.vector_kernels import (
    FLOAT,
    HALF,
    LANE,
    LANES,
    PANEL,
    TILE_ROWS,
    VECTOR,
    VOID,
    WIDE_PANEL,
    WIDE_ROWS,
    VectorLoop,
    at,
    block_function,
    declare,
    load_vector,
    multiply_add,
    number,
    prefetch,
    shuffle,
    splat,
    store_vector,
    vector_of,
)


def _first_lanes(builder: Any, count: Any, lanes: int) -> Any:
    """True in the first `count` of the `lanes`."""
    wide = ir.VectorType(LANE, lanes)
    undefined = ir.Constant(wide, ir.Undefined)
    counts = builder.insert_element(undefined, builder.trunc(count, LANE), ir.Constant(LANE, 0))
    return builder.icmp_signed(
        "<", ir.Constant(wide, list(range(lanes))), shuffle(builder, counts, undefined, [0] * lanes)
    )


LINES_AHEAD = 8
"""A wide panel of 256 rows does not fit the first cache: each row is asked for so many rows before its turn."""


class _Whole:
    """Reads and writes full vectors."""

    def load(self, builder: Any, pointer: Any) -> Any:
        return load_vector(builder, pointer)

    def store(self, builder: Any, value: Any, pointer: Any) -> None:
        store_vector(builder, value, pointer)


class _Partial:
    """Reads and writes only the first `count` lanes: a row's end, where the next row or foreign memory follows."""

    def __init__(self, builder: Any, count: Any, lanes: int) -> None:
        self.lanes, self.kind = lanes, vector_of(lanes)
        self.mask = _first_lanes(builder, count, lanes)

    def load(self, builder: Any, pointer: Any) -> Any:
        kinds = [self.kind.as_pointer(), LANE, self.mask.type, self.kind]
        function = declare(builder.module, f"llvm.masked.load.v{self.lanes}f32.p0", self.kind, kinds)
        address, zeros = builder.bitcast(pointer, kinds[0]), ir.Constant(self.kind, [0.0] * self.lanes)
        return builder.call(function, [address, ir.Constant(LANE, 4), self.mask, zeros])

    def store(self, builder: Any, value: Any, pointer: Any) -> None:
        kinds = [self.kind, self.kind.as_pointer(), LANE, self.mask.type]
        function = declare(builder.module, f"llvm.masked.store.v{self.lanes}f32.p0", VOID, kinds)
        builder.call(function, [value, builder.bitcast(pointer, kinds[1]), ir.Constant(LANE, 4), self.mask])


def _tile(rows: int) -> Any:
    """C[rows, columns] = max(floor, bias[rows] + A[rows, depth] @ B[depth, columns]), or C += that.

    A is read element by element, so it may lie either way: element (m, k) at `m * row_step + k * column_step`.
    `columns` is a whole panel, or what is left: up to a vector, of which a half does where there are that few.
    The floor is 0 for ReLU and -inf for none; a NaN is not below it and passes.
    """

    def emit(builder: Any, arguments: list[Any]) -> None:
        columns = arguments[9]
        with builder.if_else(builder.icmp_signed(">", columns, number(LANES))) as (whole, part):
            with whole:
                _product(builder, arguments, rows, 2, LANES)
            with part, builder.if_else(builder.icmp_signed(">", columns, number(HALF))) as (slim, half):
                with slim:
                    _product(builder, arguments, rows, 1, LANES)
                with half:
                    _product(builder, arguments, rows, 1, HALF)

    return block_function(f"hotloop_tile_{rows}", "poipoiipoipoiifi", emit)


def _wide_tile(rows: int) -> Any:
    """The same for a whole wide panel."""

    def emit(builder: Any, arguments: list[Any]) -> None:
        _product(builder, arguments, rows, WIDE_PANEL // LANES, LANES)

    return block_function(f"hotloop_wide_tile_{rows}", "poipoiipoipoiifi", emit)


def _product(builder: Any, arguments: list[Any], rows: int, vectors: int, lanes: int) -> None:
    """One vector wide, only `columns` of its lanes are read and written; wider, all are."""
    c, c_stride, a, row_step, column_step, b, b_stride, bias, depth, columns, floor, accumulate = arguments
    access = _Partial(builder, columns, lanes) if vectors == 1 else _Whole()
    starts = [splat(builder, builder.load(at(builder, bias, number(m))), lanes) for m in range(rows)]
    lines = [at(builder, a, builder.mul(row_step, number(m))) for m in range(rows)]
    loop = VectorLoop(builder, depth, 1, [start for start in starts for _ in range(vectors)])
    b_line = at(builder, b, builder.mul(loop.index, b_stride))
    right = [access.load(builder, at(builder, b_line, number(v * LANES))) for v in range(vectors)]
    if vectors > 2:
        ahead = at(builder, b_line, builder.mul(b_stride, number(LINES_AHEAD)))
        for v in range(vectors):
            prefetch(builder, at(builder, ahead, number(v * LANES)))
    step = builder.mul(loop.index, column_step)
    totals = []
    for m in range(rows):
        left = splat(builder, builder.load(at(builder, lines[m], step)), lanes)
        totals += [multiply_add(builder, left, right[v], loop.carried[m * vectors + v]) for v in range(vectors)]
    _finish(builder, access, loop.close(totals), vectors, (c, c_stride, splat(builder, floor, lanes), accumulate))


def _finish(builder: Any, access: Any, totals: list[Any], vectors: int, output: Any) -> None:
    c, c_stride, floor, accumulate = output
    places = [
        at(builder, c, builder.mul(c_stride, number(index // vectors)), number(index % vectors * LANES))
        for index in range(len(totals))
    ]
    with builder.if_else(builder.icmp_signed("!=", accumulate, number(0))) as (adding, writing):
        with adding:
            for total, place in zip(totals, places, strict=True):
                access.store(builder, builder.fadd(access.load(builder, place), total), place)
        with writing:
            for total, place in zip(totals, places, strict=True):
                kept = builder.select(builder.fcmp_ordered("<", total, floor), floor, total)
                access.store(builder, kept, place)


tile_main = _tile(TILE_ROWS)
tile_4 = _tile(4)
tile_2 = _tile(2)
tile_1 = _tile(1)
wide_tile_main = _wide_tile(WIDE_ROWS)
wide_tile_4 = _wide_tile(4)
wide_tile_2 = _wide_tile(2)
wide_tile_1 = _wide_tile(1)


def _transpose(builder: Any, arguments: list[Any]) -> None:
    """Square of LANES x LANES: the lanes of each pair of rows are exchanged in halves, quarters, ..."""
    target, target_stride, source, source_stride = arguments
    rows = [load_vector(builder, at(builder, source, builder.mul(source_stride, number(m)))) for m in range(LANES)]
    half = LANES // 2
    while half:
        low = [lane if not lane & half else LANES + lane - half for lane in range(LANES)]
        high = [lane + half if not lane & half else LANES + lane for lane in range(LANES)]
        for m in range(LANES):
            if not m & half:
                first, second = rows[m], rows[m + half]
                rows[m], rows[m + half] = shuffle(builder, first, second, low), shuffle(builder, first, second, high)
        half //= 2
    for m, row in enumerate(rows):
        store_vector(builder, row, at(builder, target, builder.mul(target_stride, number(m))))


transpose_square = block_function("hotloop_transpose", "poipoi", _transpose)


def _dots(rows: int) -> Any:
    """out[m] = bias[m] + sum of the first `length` of A[m] * x, whole vectors of it; `length` at least LANES."""

    def emit(builder: Any, arguments: list[Any]) -> None:
        out, a, a_stride, x, length, bias = arguments
        lines = [at(builder, a, builder.mul(a_stride, number(m))) for m in range(rows)]
        whole = builder.and_(length, number(-LANES))
        loop = VectorLoop(builder, whole, LANES, [ir.Constant(VECTOR, [0.0] * LANES)] * rows)
        right = load_vector(builder, at(builder, x, loop.index))
        totals = [
            multiply_add(builder, load_vector(builder, at(builder, line, loop.index)), right, total)
            for line, total in zip(lines, loop.carried, strict=True)
        ]
        for m, total in enumerate(loop.close(totals)):
            start = builder.load(at(builder, bias, number(m)))
            builder.store(_sum_lanes(builder, total, start), at(builder, out, number(m)))

    return block_function(f"hotloop_dots_{rows}", "popoipoipo", emit)


def _sum_lanes(builder: Any, vector: Any, start: Any) -> Any:
    function = declare(builder.module, f"llvm.vector.reduce.fadd.v{LANES}f32", FLOAT, [FLOAT, VECTOR])
    return builder.call(function, [start, vector], fastmath=["reassoc"])


dots_4 = _dots(4)
dots_1 = _dots(1)


def _sum_of_squares(builder: Any, arguments: list[Any]) -> Any:
    """Over whole vectors; four accumulators, since one waits four cycles for its predecessor."""
    x, length = arguments
    whole = builder.and_(length, number(-4 * LANES))
    loop = VectorLoop(builder, whole, 4 * LANES, [ir.Constant(VECTOR, [0.0] * LANES)] * 4)
    totals = []
    for part, total in enumerate(loop.carried):
        value = load_vector(builder, at(builder, x, loop.index, number(part * LANES)))
        totals.append(multiply_add(builder, value, value, total))
    first, second, third, fourth = loop.close(totals)
    total = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
    return _sum_lanes(builder, total, ir.Constant(FLOAT, 0.0))


sum_of_squares_whole = block_function("hotloop_sum_of_squares", "poi", _sum_of_squares, FLOAT)


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
    while WIDE_PANEL > PANEL and n + WIDE_PANEL <= columns:
        wide_sizes = (rows, WIDE_PANEL, depth)
        _wide_panel((c_data, c_at + n, c_step), a, (b_data, b_at + n, b_step), bias, wide_sizes, floor, add)
        n += WIDE_PANEL
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


@inline_kernel
def _wide_panel(c: Matrix, a: SteppedMatrix, b: Matrix, bias: Place, sizes: Sizes, floor: float, add: int) -> None:
    (cd, co, cs), (ad, ao, ar, ac), (bd, bo, bs), (bias_d, bias_o), (rows, columns, depth) = c, a, b, bias, sizes
    m = 0
    while m + WIDE_ROWS <= rows:
        wide_tile_main(
            cd, co + m * cs, cs, ad, ao + m * ar, ar, ac, bd, bo, bs, bias_d, bias_o + m, depth, columns, floor, add
        )
        m += WIDE_ROWS
    if m + 4 <= rows:
        wide_tile_4(
            cd, co + m * cs, cs, ad, ao + m * ar, ar, ac, bd, bo, bs, bias_d, bias_o + m, depth, columns, floor, add
        )
        m += 4
    if m + 2 <= rows:
        wide_tile_2(
            cd, co + m * cs, cs, ad, ao + m * ar, ar, ac, bd, bo, bs, bias_d, bias_o + m, depth, columns, floor, add
        )
        m += 2
    if m < rows:
        wide_tile_1(
            cd, co + m * cs, cs, ad, ao + m * ar, ar, ac, bd, bo, bs, bias_d, bias_o + m, depth, columns, floor, add
        )


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
def multiply_vector(out: Place, a: Matrix, x: Place, bias: Place, rows: int, depth: int) -> None:
    """out [rows] = bias + A [rows, depth] @ x: for one row at a time, where a tile would use one lane in sixteen."""
    (od, oo), (ad, ao, stride), (xd, xo), (bias_d, bias_o) = out, a, x, bias
    whole = depth // LANES * LANES
    m = 0
    while whole > 0 and m + 4 <= rows:
        dots_4(od, oo + m, ad, ao + m * stride, stride, xd, xo, depth, bias_d, bias_o + m)
        m += 4
    while whole > 0 and m < rows:
        dots_1(od, oo + m, ad, ao + m * stride, stride, xd, xo, depth, bias_d, bias_o + m)
        m += 1
    for m in range(rows if whole < depth else 0):
        total = od[oo + m] if whole > 0 else bias_d[bias_o + m]
        for k in range(whole, depth):
            total += ad[ao + m * stride + k] * xd[xo + k]
        od[oo + m] = total


@inline_kernel
def sum_of_squares(x: Array) -> float:
    """Sum of x^2, in float32 lanes."""
    whole = x.size // (4 * LANES) * (4 * LANES)
    total = sum_of_squares_whole(x, 0, whole) if whole > 0 else x.dtype.type(0.0)
    for i in range(whole, x.size):
        total += x[i] * x[i]
    return total
