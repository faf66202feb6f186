"""The pictures of the documents, by a real Chromium: the dashboard as a GIF and on a phone, and the doctor's page.

hotloop doctor --html doctor.html examples/plain_dqn.py
python -m tests.dashboard.pictures RUNS doctor.html docs/images
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from PIL import Image

from tests.dashboard.chromium import Page, chromium
from tests.dashboard.served import Server
from tests.dashboard.test_dashboard_browser import ROWS

WIDTH, HEIGHT = 1300, 845
SHOWN = (900, 585)


class Film:
    """Frames with how long each is shown."""

    def __init__(self, page: Page, folder: Path) -> None:
        self._page, self._file = page, folder / ".frame.png"
        self.frames: list[tuple[Image.Image, int]] = []

    def take(self, milliseconds: int) -> None:
        self._page.picture(self._file)
        with Image.open(self._file) as shot:
            small = shot.convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS)
        self._file.unlink()
        self.frames.append((small.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE), milliseconds))

    def write(self, file: Path) -> None:
        (first, shown), rest = self.frames[0], self.frames[1:]
        times = [shown, *(milliseconds for _, milliseconds in rest)]
        first.save(
            file, save_all=True, append_images=[frame for frame, _ in rest], duration=times, loop=0, optimize=True
        )


def choose(page: Page, words: str, count: int) -> None:
    """Only the first `count` arms whose names hold these words."""
    page.run("document.getElementById('choose-none').click()")
    for number in range(count):
        boxes = f"[...document.querySelectorAll('#table input[aria-label*=\"{words}\"]')]"
        page.run(f"{boxes}[{number}].click()")


def film(page: Page, film: Film, words: str) -> None:
    """Two arms with their verdict, the seeds of one, then one run and its agent at play."""
    page.wait("document.querySelector('#curve canvas')")
    time.sleep(1.0)
    film.take(1_600)
    choose(page, words, 2)
    page.wait("document.querySelector('#verdict .sentence')")
    time.sleep(0.6)
    film.take(2_600)
    page.run("document.querySelector('#keys button').dispatchEvent(new MouseEvent('mouseenter'))")
    time.sleep(1.0)
    film.take(1_800)
    page.run("document.getElementById('grouped').click()")
    page.wait(f"document.querySelector('#table a[href^=\"#/run/\"]') && {ROWS} > 3")
    links = f"[...document.querySelectorAll('#table a')].filter((one) => one.innerText.includes('{words}'))"
    page.run(f"location.hash = {links}.at(-1).hash")
    page.wait("document.querySelector('#run .figures')")
    time.sleep(1.2)
    film.take(2_200)
    page.run("[...document.querySelectorAll('#run button')].find((one) => one.textContent.startsWith('play')).click()")
    page.wait("document.querySelector('.frame-picture')?.naturalWidth > 0", 120)
    for moment in range(0, 100, 5):
        page.run(f"document.querySelector('input[type=range]').value = {moment}")
        page.run("document.querySelector('input[type=range]').dispatchEvent(new Event('input'))")
        time.sleep(0.12)
        film.take(90)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=Path)
    parser.add_argument("doctor", type=Path, help="a page of `hotloop doctor --html`")
    parser.add_argument("out", type=Path)
    parser.add_argument("--arms", default="cartpole-dqn", help="words in the names of the two arms that are compared")
    given = parser.parse_args()
    server = Server(given.runs)
    try:
        with chromium() as page:
            page.size(WIDTH, HEIGHT)
            page.open(server.link)
            page.wait(f"{ROWS} > 1")
            page.run("document.getElementById('machine').hidden = true")  # of the machine that made the picture
            made = Film(page, given.out)
            film(page, made, given.arms)
            made.write(given.out / "dashboard.gif")
            page.size(390, 844, dark=True)
            page.run("window.scrollTo(0, 0)")
            time.sleep(1.0)
            page.picture(given.out / "dashboard-phone.png")
            page.size(1000, 650)
            page.open(given.doctor.resolve().as_uri())
            time.sleep(1.0)
            page.picture(given.out / "doctor.png")
    finally:
        server.end()


if __name__ == "__main__":
    main()
