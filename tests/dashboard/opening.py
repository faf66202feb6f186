"""How long a folder takes to open: the answers for the first screen, and a real browser until curves are drawn.

python -m tests.dashboard.synthetic FOLDER
python -m tests.dashboard.opening FOLDER --times 5
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import urllib.request
from pathlib import Path

import psutil

from tests.dashboard.chromium import BROWSER, chromium
from tests.dashboard.clients import cookie_of
from tests.dashboard.served import Server


def asked(server: Server, cookie: str, path: str) -> bytes:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers={"cookie": cookie})
    with urllib.request.urlopen(request) as answer:
        return bytes(answer.read())


def first_screen(folder: Path) -> tuple[float, float, float]:
    """Seconds until the link is printed, from then until table and first curves are there, and the processor seconds of
    the server up to that; of a fresh one."""
    begun = time.perf_counter()
    server = Server(folder)
    printed = time.perf_counter()
    try:
        cookie = cookie_of(server.link)
        table = json.loads(asked(server, cookie, "/api/table"))
        chosen = [id for arm in table["arms"][:5] for id in arm["runs"]]
        asked(server, cookie, f"/api/curves?runs={','.join(chosen)}&width=800")
        shown = time.perf_counter()
        used = psutil.Process(server.process.pid).cpu_times()
        return printed - begun, shown - printed, used.user + used.system
    finally:
        server.end()


def in_browser(folder: Path) -> float:
    """Milliseconds from the click on the link until the first curves are drawn."""
    server = Server(folder)
    try:
        with chromium() as page:
            page.size(1400, 900)
            page.open(server.link)
            page.wait("performance.getEntriesByName('drawn').length", 60)
            return float(page.run("performance.getEntriesByName('drawn')[0].startTime"))
    finally:
        server.end()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    found = [first_screen(given.folder) for _ in range(given.times)]
    for name, seconds in zip(
        ("until the link", "from then: table and first curves", "processor time of the server, all of it"),
        zip(*found, strict=True),
        strict=True,
    ):
        print(f"{name}: median {statistics.median(seconds):.3f} s, {min(seconds):.3f} to {max(seconds):.3f}")
    if BROWSER is not None:
        drawn = [in_browser(given.folder) for _ in range(given.times)]
        print(
            f"Chromium, link to curves: median {statistics.median(drawn):.0f} ms, {min(drawn):.0f} to {max(drawn):.0f}"
        )


if __name__ == "__main__":
    main()
