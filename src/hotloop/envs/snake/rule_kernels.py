"""One game's rules: start, turn, move, eat, die."""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import inline_kernel, next_below
from hotloop.envs.snake.board_kernels import flip_bit, has_bit, nth_free_bit
from hotloop.envs.snake.layout import DIRECTION, FOOD, HEAD, HUNGRY, LENGTH, NO_FOOD, STEPS, Games, Rules

ALIVE, WON, HIT_WALL, HIT_BODY = range(4)


@inline_kernel
def step_right(direction: int) -> int:
    """The change of x: directions are 0 up, 1 right, 2 down, 3 left."""
    return (direction == 1) - (direction == 3)


@inline_kernel
def step_down(direction: int) -> int:
    return (direction == 2) - (direction == 0)


@inline_kernel
def tail_cell(games: Games, env: int) -> int:
    slot = games.game[env, HEAD] - games.game[env, LENGTH] + 1
    return games.body[env, slot if slot >= 0 else slot + games.body.shape[1]]


@inline_kernel
def on_board(rules: Rules, x: int, y: int) -> bool:
    return (x >= 0) & (x < rules.size) & (y >= 0) & (y < rules.size)


@inline_kernel
def is_body(games: Games, rules: Rules, env: int, x: int, y: int) -> bool:
    """Whether a cell of the board is part of the snake."""
    return has_bit(games.occupied[env], y * rules.stride + x)


@inline_kernel
def is_safe(games: Games, rules: Rules, env: int, x: int, y: int) -> bool:
    """Whether the head may move to (x, y); the tail's cell is deadly unless the rules free it."""
    if not on_board(rules, x, y):
        return False
    if not is_body(games, rules, env, x, y):
        return True
    return rules.free_tail and tail_cell(games, env) == (y << 6) + x


@inline_kernel
def place_food(games: Games, rules: Rules, env: int) -> None:
    """On any empty cell, each as likely; one draw. A full board gets none, and draws none."""
    empty = rules.size * rules.size - games.game[env, LENGTH]
    if empty == 0:
        games.game[env, FOOD] = NO_FOOD
        return
    bit = nth_free_bit(games.board, games.occupied[env], next_below(games.generator, env, empty))
    y = bit // rules.stride
    games.game[env, FOOD] = (y << 6) + bit - y * rules.stride


@inline_kernel
def start_game(games: Games, rules: Rules, env: int) -> None:
    """Head in the middle, the body to its left, heading right."""
    middle, game, occupied = rules.size // 2, games.game[env], games.occupied[env]
    occupied[:] = np.uint64(0)
    for part in range(rules.start_length):
        x = middle - rules.start_length + 1 + part
        games.body[env, part] = (middle << 6) + x
        flip_bit(occupied, middle * rules.stride + x)
    game[HEAD], game[LENGTH], game[DIRECTION] = rules.start_length - 1, rules.start_length, 1
    game[STEPS], game[HUNGRY] = 0, 0
    place_food(games, rules, env)


@inline_kernel
def turned(rules: Rules, direction: int, action: int) -> int:
    if rules.absolute:
        return direction if action == (direction + 2) & 3 else action & 3
    return (direction + (action == 2) - (action == 1)) & 3


@inline_kernel
def move(games: Games, rules: Rules, env: int, action: int) -> tuple[int, float]:
    """How the step ended and its reward; a snake that dies stays as it was."""
    game = games.game[env]
    direction = turned(rules, game[DIRECTION], action)
    game[STEPS] += 1
    game[HUNGRY] += 1
    head = games.body[env, game[HEAD]]
    x, y = (head & 63) + step_right(direction), (head >> 6) + step_down(direction)
    if not is_safe(games, rules, env, x, y):
        return HIT_BODY if on_board(rules, x, y) else HIT_WALL, rules.death_reward
    game[DIRECTION] = direction
    food = game[FOOD]
    ahead = (food & 63) - x if direction & 1 else (food >> 6) - y  # along the way of the move, after it
    forward = step_right(direction) + step_down(direction)
    if (y << 6) + x == food:
        return eat(games, rules, env, x, y), rules.food_reward
    vacate_tail(games, rules, env)
    put_head(games, rules, env, x, y)
    return ALIVE, rules.nearer_reward if ahead * forward >= 0 else rules.farther_reward


@inline_kernel
def eat(games: Games, rules: Rules, env: int, x: int, y: int) -> int:
    game = games.game[env]
    game[LENGTH] += 1
    game[HUNGRY] = 0
    put_head(games, rules, env, x, y)
    place_food(games, rules, env)
    return WON if game[FOOD] == NO_FOOD else ALIVE


@inline_kernel
def vacate_tail(games: Games, rules: Rules, env: int) -> None:
    tail = tail_cell(games, env)
    flip_bit(games.occupied[env], (tail >> 6) * rules.stride + (tail & 63))


@inline_kernel
def put_head(games: Games, rules: Rules, env: int, x: int, y: int) -> None:
    slot = games.game[env, HEAD] + 1
    slot = slot if slot < games.body.shape[1] else 0
    games.game[env, HEAD] = slot
    games.body[env, slot] = (y << 6) + x
    flip_bit(games.occupied[env], y * rules.stride + x)
