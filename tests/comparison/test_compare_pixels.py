from __future__ import annotations

import string

import numpy as np
from tests.comparison.test_compare_chart import FRAME, curve

from hotloop.core.types import Array
from hotloop.render.chart import WIDTH, Curve, lay_out
from hotloop.render.picture import SCALE, as_pixels, strokes_of, width_of

BLUE, ORANGE = (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)


def pixels_of(picture: Array, colour: tuple[int, int, int]) -> int:
    return int((picture == colour).all(axis=2).sum())


def test_a_picture_shows_each_arm_in_its_colour_on_white() -> None:
    chart = lay_out([curve("first"), curve("second")], FRAME)
    picture = as_pixels(chart)
    assert picture.shape == (round(chart.height * SCALE), round(WIDTH * SCALE), 3)
    assert picture.dtype == np.uint8
    assert tuple(picture[0, 0]) == (255, 255, 255)
    assert pixels_of(picture, BLUE) > 100  # its sample in the legend; its line lies under the second
    assert pixels_of(picture, ORANGE) > pixels_of(picture, BLUE)


def test_one_point_and_no_curve_still_make_a_picture() -> None:
    alone = as_pixels(lay_out([Curve("flat", np.ones(1), np.ones(1), None, None)], FRAME))
    assert pixels_of(alone, BLUE) > 100
    assert as_pixels(lay_out([], FRAME)).shape[1] == WIDTH * SCALE


def test_every_letter_differs_from_every_other_but_for_those_that_look_alike() -> None:
    shapes = {letter: str([stroke.tolist() for stroke in strokes_of(letter)[0]]) for letter in string.printable[:94]}
    alike = {frozenset(other for other in shapes if shapes[other] == shapes[letter]) for letter in shapes}
    assert {group for group in alike if len(group) > 1} == {frozenset("O0"), frozenset("Il"), frozenset("^$~")}


def test_words_are_as_wide_as_their_letters() -> None:
    assert width_of("") == 0.0
    assert width_of("I") < width_of("M") < width_of("MI")
