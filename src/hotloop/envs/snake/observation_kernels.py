"""What the policy sees of one game, written into its row of the observations."""

from __future__ import annotations

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.envs.snake.board_kernels import has_bit
from hotloop.envs.snake.fill_kernels import fill
from hotloop.envs.snake.layout import (
    BASIC10,
    DIRECTION,
    ENHANCED,
    FLOOD_FILL,
    FOOD,
    GRID,
    HEAD,
    LENGTH,
    NO_FOOD,
    Games,
    Rules,
)
from hotloop.envs.snake.rule_kernels import is_body, is_safe, on_board, step_down, step_right, tail_cell

PRESENT = 255  # in a grid: bytes reach a network as 0..1


@inline_kernel
def observe(games: Games, rules: Rules, env: int, row: Array) -> None:
    if rules.observation == GRID:
        observe_grid(games, rules, env, row)
        return
    at = observe_basic(games, rules, env, row)
    if rules.observation >= FLOOD_FILL:
        observe_room(games, rules, env, row, at)


@inline_kernel
def observe_basic(games: Games, rules: Rules, env: int, row: Array) -> int:
    """Danger straight, left, right, back; food up, right, down, left; heading up, right, down. The next index."""
    head, direction = games.body[env, games.game[env, HEAD]], games.game[env, DIRECTION]
    x, y = head & 63, head >> 6
    row[0] = danger(games, rules, env, x, y, direction)
    row[1] = danger(games, rules, env, x, y, (direction + 3) & 3)
    row[2] = danger(games, rules, env, x, y, (direction + 1) & 3)
    at = 3
    if rules.observation != BASIC10:
        row[3] = danger(games, rules, env, x, y, (direction + 2) & 3)
        at = 4
    food = games.game[env, FOOD]
    observe_side(row, at, x, y, head if food == NO_FOOD else food)
    for way in range(3):
        row[at + 4 + way] = direction == way
    return at + 7


@inline_kernel
def danger(games: Games, rules: Rules, env: int, x: int, y: int, direction: int) -> bool:
    return not is_safe(games, rules, env, x + step_right(direction), y + step_down(direction))


@inline_kernel
def observe_side(row: Array, at: int, x: int, y: int, cell: int) -> None:
    """Whether `cell` lies up, right, down, left of (x, y)."""
    row[at] = (cell >> 6) < y
    row[at + 1] = (cell & 63) > x
    row[at + 2] = (cell >> 6) > y
    row[at + 3] = (cell & 63) < x


@inline_kernel
def observe_room(games: Games, rules: Rules, env: int, row: Array, at: int) -> None:
    """Room straight, right and left, and what else is told about the ways out."""
    head, direction, tail = games.body[env, games.game[env, HEAD]], games.game[env, DIRECTION], tail_cell(games, env)
    x, y, enhanced = head & 63, head >> 6, rules.observation == ENHANCED
    free = max(rules.size * rules.size - games.game[env, LENGTH], 1)
    for side in range(3):
        way = (direction + (side == 1) - (side == 2)) & 3
        to_x, to_y = x + step_right(way), y + step_down(way)
        safe = is_safe(games, rules, env, to_x, to_y)
        row[at + side] = min(room_towards(games, rules, env, side, to_x, to_y, safe) / free, 1.0)
        if enhanced:
            row[at + 3 + side] = free_neighbours(games, rules, env, to_x, to_y) / 4.0 if safe else 0.0
    at += 6 if enhanced else 3
    apart = abs((tail & 63) - x) + abs((tail >> 6) - y)
    if rules.observation > FLOOD_FILL:
        observe_side(row, at, x, y, tail)
        row[at + 4] = apart == 1 or tail_touched(games, rules, tail)
    if enhanced:
        row[at + 5] = apart / (2.0 * (rules.size - 1))
        row[at + 6] = games.game[env, LENGTH] / (rules.size * rules.size)


@inline_kernel
def room_towards(games: Games, rules: Rules, env: int, side: int, x: int, y: int, safe: bool) -> int:
    """Cells reachable from (x, y), 0 where unsafe. Sides mostly open into one region, which is filled once.

    `games.room` keeps the counts of the regions in `games.reached`; 0 marks a side that has no region of its own.
    """
    bit, room = y * rules.stride + x, games.room
    room[side] = 0
    if not safe:
        return 0
    for earlier in range(side):
        if room[earlier] > 0 and has_bit(games.reached[earlier], bit):
            return room[earlier]
    count = fill(games.board, games.occupied[env], rules.stride, bit, games.reached[side])
    if not is_body(games, rules, env, x, y):  # a fill from the freed tail holds for that way only: it joins regions
        room[side] = count
    return count


@inline_kernel
def free_neighbours(games: Games, rules: Rules, env: int, x: int, y: int) -> int:
    count = 0
    for way in range(4):
        to_x, to_y = x + step_right(way), y + step_down(way)
        count += on_board(rules, to_x, to_y) and not is_body(games, rules, env, to_x, to_y)
    return count


@inline_kernel
def tail_touched(games: Games, rules: Rules, tail: int) -> bool:
    """Whether a region beside the head reaches a cell beside the tail: the way from head to tail, without a fill."""
    for way in range(4):
        x, y = (tail & 63) + step_right(way), (tail >> 6) + step_down(way)
        for side in range(3):
            if games.room[side] > 0 and on_board(rules, x, y) and has_bit(games.reached[side], y * rules.stride + x):
                return True
    return False


@inline_kernel
def observe_grid(games: Games, rules: Rules, env: int, row: Array) -> None:
    """`row` is [size * size * 3]: for each cell head, rest of the body, food."""
    row[:] = 0
    cells = games.body.shape[1]
    slot, food = games.game[env, HEAD], games.game[env, FOOD]
    for part in range(games.game[env, LENGTH]):
        cell = games.body[env, slot]
        row[((cell >> 6) * rules.size + (cell & 63)) * 3 + (part > 0)] = PRESENT
        slot = slot - 1 if slot > 0 else cells - 1
    if food != NO_FOOD:
        row[((food >> 6) * rules.size + (food & 63)) * 3 + 2] = PRESENT
