"""Known pixels: where shapes lie, what they are mixed with, and that a picture comes back from its file as it was."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from hotloop.core.types import Array
from hotloop.render.picture import Box, Canvas, mixed, png_bytes, shrunk

BLACK, WHITE, RED = (0, 0, 0), (255, 255, 255), (200, 40, 40)


def lit(canvas: Canvas) -> Array:
    return canvas.finished()[..., 0] > 200


def test_pixels_come_back_as_they_were() -> None:
    frame = np.random.default_rng(0).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    data = png_bytes(frame[:, ::-1])  # a view: not in the order in which it lies in memory
    np.testing.assert_array_equal(np.array(Image.open(io.BytesIO(data))), frame[:, ::-1])


def test_the_same_picture_is_the_same_file() -> None:
    def painted() -> bytes:
        canvas = Canvas(60, 20, BLACK)
        canvas.write("goal reached", 2, 15, WHITE, size=10)
        return png_bytes(canvas.finished())

    assert painted() == painted()


@pytest.mark.parametrize("finer", [1, 2, 3, 4])
def test_a_box_covers_its_pixels_and_its_frame_those_around_them(finer: int) -> None:
    canvas = Canvas(8, 6, BLACK, finer=finer)
    canvas.fill(Box(2, 2, 5, 4), RED)
    canvas.frame(Box(2, 2, 5, 4), WHITE)
    frame = canvas.finished()
    assert frame.shape == (6, 8, 3)
    assert frame.dtype == np.uint8
    assert (frame[2:4, 2:5] == RED).all()
    assert (frame[1, 1:6] == WHITE).all()
    assert (frame[1:5, 5] == WHITE).all()
    assert not frame[0].any()
    assert not frame[:, 6:].any()


def test_half_a_pixel_gets_half_of_the_color_and_so_does_half_an_opacity() -> None:
    canvas = Canvas(4, 1, BLACK)
    canvas.fill(Box(0, 0, 1.5, 1), (100, 100, 100))
    canvas.fill(Box(2, 0, 4, 1), (100, 100, 100), opacity=0.5)
    canvas.fill(Box(3, 0, 3, 1), WHITE)  # of no width: nothing
    assert canvas.finished()[0, :, 0].tolist() == [100, 50, 50, 50]


def test_each_column_of_the_ground_has_its_own_color() -> None:
    canvas = Canvas(5, 3, BLACK)
    canvas.shade(Box(1, 1, 4, 3), np.array([[10.0, 0, 0], [20.4, 0, 0], [30, 0, 0]]))
    assert canvas.finished()[:, :, 0].tolist() == [[0] * 5, [0, 10, 20, 30, 0], [0, 10, 20, 30, 0]]


def test_lines_discs_and_areas_lie_where_they_should() -> None:
    canvas = Canvas(30, 10, BLACK)
    canvas.line(np.array([[2.0, 5.0], [8.0, 5.0]]), WHITE, width=2.0)
    canvas.disc((15.0, 5.0), 2.0, WHITE)
    canvas.area(np.array([[20.0, 2.0], [24.0, 2.0], [24.0, 8.0], [20.0, 8.0]]), WHITE)
    canvas.disc((-50.0, 500.0), 3.0, WHITE)  # nowhere in the picture
    seen = lit(canvas)
    assert np.flatnonzero(seen[:, 5]).tolist() == [4, 5]
    assert set(range(2, 8)) <= set(np.flatnonzero(seen[4, :12]).tolist()) <= set(range(1, 9))  # its ends are round
    assert np.flatnonzero(seen[5, 11:19]).tolist() == [2, 3, 4, 5]
    assert np.flatnonzero(seen[:, 22]).tolist() == [2, 3, 4, 5, 6, 7]


def test_a_line_of_one_point_is_a_dot_and_a_dashed_one_has_gaps() -> None:
    canvas = Canvas(20, 10, BLACK)
    canvas.line(np.array([[5.0, 2.0]]), WHITE, width=4.0)
    canvas.dashes(np.array([[0.0, 7.0], [20.0, 7.0]]), WHITE, 2.0, (4.0, 4.0))
    seen = lit(canvas)
    assert seen[1:3, 4:6].all()
    assert seen[6, [1, 2, 9, 10, 17, 18]].all()
    assert not seen[6, [5, 6, 13, 14]].any()


def test_what_is_seen_through_is_mixed_once() -> None:
    canvas = Canvas(40, 40, BLACK)
    canvas.area(np.array([[5.0, 5.0], [35.0, 8.0], [20.0, 20.0], [30.0, 35.0]]), WHITE, opacity=0.4)
    assert canvas.finished().max() == round(255 * 0.4)


def test_words_stand_on_their_line_at_their_side_and_are_one_line() -> None:
    def columns(text: str, anchor: float) -> Array:
        canvas = Canvas(120, 40, BLACK)
        width = canvas.write(text, 60, 30, WHITE, size=12, anchor=anchor)
        ink = canvas.finished()[..., 0] > 60
        assert 0 < width < 60
        assert ink[20:31].any()
        assert not ink[32:].any()  # nothing hangs below in these letters, and there is no second line
        return np.flatnonzero(ink.any(axis=0))

    assert columns("words", 0.0).min() >= 60
    assert columns("words", 1.0).max() <= 60
    assert abs(columns("words", 0.5).mean() - 60) < 3
    np.testing.assert_array_equal(columns("two\nlines", 0.0), columns("two lines", 0.0))
    assert len(columns("\ud800 half", 0.0))


def test_letters_differ() -> None:
    letters, seen = "abcdefghijklmnopqrstuvwxyzABCDEFGHJKLMNOPQRSTUVWXYZ0123456789.,-+=%()/:…±", set()
    for letter in letters:
        canvas = Canvas(20, 20, BLACK)
        canvas.write(letter, 4, 15, WHITE, size=14)
        seen.add(canvas.finished().tobytes())
    assert len(seen) == len(letters)
    assert np.zeros((20, 20, 3), np.uint8).tobytes() not in seen


def test_only_a_picture_that_is_too_large_is_made_smaller() -> None:
    frame = np.full((40, 60, 3), 90, np.uint8)
    frame[:, :30] = 200
    small = shrunk(frame, 30)
    assert small.shape == (20, 30, 3)
    assert (small[:, 5] == 200).all()
    assert (small[:, 25] == 90).all()
    assert shrunk(frame, 60) is frame


def test_colors_are_mixed_by_shares() -> None:
    assert [mixed((0, 100, 7), (10, 0, 7), share) for share in (0.0, 0.5, 1.0)] == [(0, 100, 7), (5, 50, 7), (10, 0, 7)]
