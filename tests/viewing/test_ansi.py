from __future__ import annotations

import pytest

from hotloop.viewing.screen import colors_of, fitted, nearest_256, size_of


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "256"),
        ({"COLORTERM": "truecolor"}, "millions"),
        ({"COLORTERM": "truecolor", "NO_COLOR": "1"}, "none"),
        ({"NO_COLOR": ""}, "256"),
    ],
)
def test_the_environment_says_how_many_colors(environment: dict[str, str], expected: str) -> None:
    assert colors_of(environment) == expected


@pytest.mark.parametrize(
    ("color", "expected"),
    [
        ((0, 0, 0), 16),
        ((255, 255, 255), 231),
        ((255, 0, 0), 196),
        ((0, 0, 95), 17),
        ((28, 28, 28), 234),
        ((24, 28, 36), 234),
    ],
)
def test_the_nearest_of_256_colors(color: tuple[int, int, int], expected: int) -> None:
    assert nearest_256(*color) == expected


def test_text_is_recolored_for_256_colors_only() -> None:
    text = "\x1b[48;2;255;0;0m  \x1b[38;2;0;0;95mx\x1b[0m"
    assert fitted(text, "256") == "\x1b[48;5;196m  \x1b[38;5;17mx\x1b[0m"
    assert fitted(text, "millions") == text


def test_codes_take_no_room() -> None:
    assert size_of("\x1b[48;2;255;0;0m  \x1b[0m\nabc") == (3, 2)
