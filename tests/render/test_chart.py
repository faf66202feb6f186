from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.comparison.measures import MOST_POINTS
from hotloop.core.types import Array
from hotloop.render.chart import SCALE, WIDTH, Curve, Frame, as_pixels, as_svg, lay_out
from hotloop.render.numbers import axis_range, nice_ticks, tick_label, time_unit

SVG = "{http://www.w3.org/2000/svg}"
FRAME = Frame("Title", "mean of 3 seeds", "env steps", threshold=3.0)


def curve(label: str, points: int = 5) -> Curve:
    x = np.linspace(100.0, 1000.0, points)
    return Curve(label, x, x / 100, x / 100 - 1, x / 100 + 1)


def drawn(curves: list[Curve], frame: Frame) -> str:
    return as_svg(lay_out(curves, frame))


def texts(svg: str) -> list[str | None]:
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 500.0, [0, 100, 200, 300, 400, 500]),
        (0.0, 20_000.0, [0, 5_000, 10_000, 15_000, 20_000]),
        (-215.0, 280.0, [-200, -100, 0, 100, 200]),
        (0.0, 0.3, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]),
    ],
)
def test_ticks_are_round_numbers_within_the_axis(low: float, high: float, expected: list[float]) -> None:
    assert nice_ticks(low, high) == expected


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_any_data_fit_their_axis_and_get_two_to_seven_ticks(first: float, second: float) -> None:
    low, high = axis_range(min(first, second), max(first, second))
    assert low <= min(first, second)
    assert high > max(first, second)
    if high - low > 1e-6 * max(abs(low), abs(high)):  # closer together than that, all ticks read the same anyway
        assert 2 <= len(nice_ticks(low, high)) <= 7


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0"), (0.25, "0.25"), (475.0, "475"), (5_000.0, "5k"), (1_500_000.0, "1.5M"), (-2e9, "-2G")],
)
def test_numbers_are_short(value: float, expected: str) -> None:
    assert tick_label(value) == expected


def test_time_is_told_in_a_unit_that_reads_well() -> None:
    assert [time_unit(seconds)[0] for seconds in (10.0, 600.0, 90_000.0)] == ["seconds", "minutes", "hours"]


def test_a_chart_names_its_arms_axes_and_threshold() -> None:
    words = texts(drawn([curve("first"), curve("second")], FRAME))
    assert {"Title", "mean of 3 seeds", "env steps", "first", "second", "threshold 3"} <= set(words)


def test_a_label_cannot_become_markup() -> None:
    svg = drawn([curve('<script>alert("&")</script>')], FRAME)
    assert "<script" not in svg
    assert '<script>alert("&")</script>' in texts(svg)


def test_lines_stay_within_the_page_and_a_full_chart_within_sixty_kilobytes() -> None:
    svg = drawn([curve(f"arm {number}", MOST_POINTS) for number in range(12)], FRAME)
    assert len(svg.encode()) < 60_000
    height = float(ElementTree.fromstring(svg).attrib["viewBox"].split()[3])
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        if "L" in path.attrib["d"]:
            places = [place.split() for place in path.attrib["d"].strip("MZ").split("L")]
            assert all(0 <= float(x) <= WIDTH and 0 <= float(y) <= height for x, y in places)


def test_arms_beyond_the_colors_are_dashed() -> None:
    svg = drawn([curve(f"arm {number}") for number in range(8)], FRAME)
    dashed = [path for path in ElementTree.fromstring(svg).iter(f"{SVG}path") if "stroke-dasharray" in path.attrib]
    assert len(dashed) == 2  # the line of the eighth, and its sample in the legend


@pytest.mark.parametrize("curves", [[], [curve("one point", 1)], [Curve("flat", np.ones(2), np.ones(2), None, None)]])
def test_little_data_still_makes_a_picture(curves: list[Curve]) -> None:
    assert "nan" not in drawn(curves, Frame("Title", "one seed", "env steps"))


BLUE, ORANGE = (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)


def pixels_of(picture: Array, color: tuple[int, int, int]) -> int:
    return int((picture == color).all(axis=2).sum())


def test_a_picture_shows_each_arm_in_its_color_on_white() -> None:
    chart = lay_out([curve("first"), curve("second")], FRAME)
    picture = as_pixels(chart)
    assert picture.shape == (round(chart.height * SCALE), round(WIDTH * SCALE), 3)
    assert picture.dtype == np.uint8
    assert tuple(picture[0, 0]) == (255, 255, 255)
    assert pixels_of(picture, BLUE) > 100  # its sample in the legend; its line lies under the second
    assert pixels_of(picture, ORANGE) > pixels_of(picture, BLUE)


def test_one_point_no_curve_and_any_name_still_make_a_picture() -> None:
    alone = as_pixels(lay_out([Curve("flat\nline \ud800", np.ones(1), np.ones(1), None, None)], FRAME))
    assert pixels_of(alone, BLUE) > 100
    assert as_pixels(lay_out([], FRAME)).shape[1] == WIDTH * SCALE
    many = as_pixels(lay_out([curve(f"arm {number}") for number in range(8)], FRAME))
    assert pixels_of(many, BLUE) > 100  # the eighth, dashed, in the first color again
