"""Known states, drawn: text as a reader sees it, and the colors of a few pixels."""

from __future__ import annotations

import numpy as np
import pytest

from hotloop.core.workloads import drawings, env_places
from hotloop.envs import cartpole_draw
from hotloop.workloads.snake import draw as snake_draw
from hotloop.workloads.snake.env import Snake


def cart(x: float, angle: float) -> dict[str, np.ndarray]:
    return {"body": np.array([[x, 0.0, angle, 0.0]])}


def snake_state() -> dict[str, np.ndarray]:
    """On a board of 5: head at (2, 1), body (1, 1), (1, 2), food at (4, 4)."""
    snake = Snake(1, np.zeros(1, np.uint64), board_size=5)
    snake.reset()
    state = snake.get_state()
    state["body"][0, :3] = [2 * 64 + 1, 1 * 64 + 1, 1 * 64 + 2]
    state["game"][0, :4] = [2, 3, 1, 4 * 64 + 4]
    return state


def test_a_cart_in_plain_characters() -> None:
    assert cartpole_draw.text(cart(-1.0, 0.2), 0, color=False).split("\n") == [
        "                        /",
        "                       /",
        "                       /",
        "                      /",
        "                      /",
        "                      /",
        "                     /",
        "                   [===]",
        "--|----------------------------------------------------------------|--",
    ]


def test_the_pole_leans_the_way_it_falls() -> None:
    upright, left = (cartpole_draw.text(cart(0.0, angle), 0, color=False) for angle in (0.0, -0.2))
    assert upright.split("\n")[0].strip() == "|"
    assert left.split("\n")[0].strip() == "\\"


def test_a_cart_is_drawn_where_it_is() -> None:
    picture = cartpole_draw.frame(cart(1.3, 0.0), 0)  # three quarters of the width: 1.3 + 2.6 of 5.2
    assert picture.shape == (176, 480, 3)
    assert picture.dtype == np.uint8
    assert tuple(picture[140, 360]) == cartpole_draw.CART
    assert tuple(picture[80, 360]) == cartpole_draw.POLE
    assert tuple(picture[140, 120]) == tuple(picture[5, 5]) == cartpole_draw.SKY


@pytest.mark.parametrize(("x", "angle"), [(2.5, 0.3), (-2.5, -0.3), (99.0, 3.0)])
def test_a_cart_beyond_the_edge_is_drawn_as_far_as_it_is_seen(x: float, angle: float) -> None:
    assert cartpole_draw.frame(cart(x, angle), 0).shape == (176, 480, 3)
    assert len(cartpole_draw.text(cart(x, angle), 0, color=False).split("\n")) == 9


def test_the_terminal_shows_two_pixels_of_a_cart_in_each_character() -> None:
    lines = cartpole_draw.text(cart(0.0, 0.0), 0).split("\n")
    assert len(lines) == 12
    assert all(line.count("▀") == 70 for line in lines)
    assert lines[0].startswith("\x1b[38;2;24;28;36m\x1b[48;2;24;28;36m▀")
    assert lines[0].endswith("\x1b[0m")


def test_the_last_state_of_a_cart_is_its_final_observation() -> None:
    final = cartpole_draw.final_state(cart(0.0, 0.0), np.array([[2.5, 1.0, 0.1, 0.0]], np.float32))
    np.testing.assert_array_equal(final["body"], np.array([[2.5, 1.0, 0.1, 0.0]], np.float32))


def test_a_snake_in_plain_characters() -> None:
    assert snake_draw.text(snake_state(), 0, color=False).split("\n") == [
        ". . . . .",
        ". o @ . .",
        ". o . . .",
        ". . . . .",
        ". . . . *",
    ]


def test_a_snake_in_color() -> None:
    picture = snake_draw.frame(snake_state(), 0)
    assert picture.shape == (320, 320, 3)
    assert tuple(picture[96, 160]) == snake_draw.FACE  # the middle of cell (2, 1), cells being 64 pixels wide
    assert tuple(picture[160, 96]) == snake_draw.TAIL
    assert tuple(picture[288, 288]) == snake_draw.APPLE


def test_the_score_while_a_game_runs_is_how_much_the_snake_has_grown() -> None:
    first, now = snake_state(), snake_state()
    first["game"][0, 1] = 2
    assert snake_draw.measures(first, now) == {"score": 1}


def test_every_native_env_has_a_drawer() -> None:
    assert drawings().keys() == env_places().keys()
