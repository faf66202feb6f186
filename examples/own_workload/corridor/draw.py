"""A corridor from its saved state: as text for a terminal, and as a picture."""

import numpy as np

FPS, WIDTH = 10, 40


def text(state, index, color=True):
    return "." * int(state["place"][index]) + "@"


def frame(state, index):
    picture = np.full((8, 8 * WIDTH, 3), 32, np.uint8)
    place = 8 * (int(state["place"][index]) % WIDTH)
    picture[:, place : place + 8] = 255
    return picture
