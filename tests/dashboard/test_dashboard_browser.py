"""The page in a real Chromium: open, filter, see a run grow, compare two arms, play the agent, stop, resume, evaluate
and extend, lose and regain the server. Skipped where there is no Chromium; the routes are tested without one."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra `dashboard` is not installed")

from tests.dashboard.chromium import BROWSER, Page, chromium
from tests.dashboard.served import Server
from tests.dashboard.synthetic import write_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_500),
    pytest.mark.skipif(BROWSER is None, reason="no chromium here: the page itself was not tested, its routes were"),
]
ROWS = "document.querySelectorAll('#table tbody tr').length"


@pytest.fixture
def page():
    with chromium() as made:
        made.size(1400, 900)
        yield made


def grow(run: Path, env_steps: int, mean_return: float) -> None:
    row = {"event": "progress", "env_steps": env_steps, "mean_return": mean_return, "seconds": 1.0}
    with open(run / "events.jsonl", "a") as stream:
        stream.write(json.dumps(row) + "\n")


def test_open_filter_compare_grow_and_a_server_that_is_lost_and_regained(tmp_path, page):
    folder = tmp_path / "runs"
    for seed in range(5):
        write_run(folder / "plain" / f"seed-{seed}", seed=seed, height=400.0)
        write_run(folder / "slow" / f"seed-{seed}", seed=seed, lr=1e-5, height=100.0)
    growing = write_run(folder / "zz<b>grows</b>", lr=0.5, rows=3, finished=False)
    trainer = os.open(growing / "lock", os.O_RDWR)
    fcntl.flock(trainer, fcntl.LOCK_EX)  # as if it were being trained
    server = Server(folder)
    try:
        page.open(server.link)
        page.wait(f"{ROWS} === 3")
        page.wait("document.querySelector('#curve canvas')")
        assert "token" not in page.run("location.href")
        assert not page.run("document.querySelector('#table b')")  # the name is text

        page.run("document.getElementById('filter').value = 'learning_rate<0.0001'")
        page.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
        page.wait(f"{ROWS} === 1")
        assert "slow" in page.run("document.querySelector('#table tbody').innerText")
        page.run("document.getElementById('filter').value = ''")
        page.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
        page.wait(f"{ROWS} === 3")

        page.run("document.getElementById('choose-none').click()")
        for label in ("plain", "slow"):
            page.run(f"document.querySelector('[aria-label=\"draw {label}\"]').click()")
        page.wait("document.querySelector('#verdict .sentence')")
        assert "against" in page.run("document.querySelector('#verdict .sentence').textContent")
        assert "optimizer.learning_rate" in page.run("document.getElementById('differences').textContent")

        grow(growing, 123_000, 77.0)
        page.wait("document.querySelector('#table tbody').innerText.includes('123k')", 40)

        server.end()
        page.wait("document.getElementById('live').textContent === 'not connected'", 40)
        server = Server(folder, port=server.port)
        grow(growing, 456_000, 78.0)
        page.wait("document.getElementById('live').textContent === 'live'", 60)
        page.wait("document.querySelector('#table tbody').innerText.includes('456k')", 40)

        page.press("/")
        assert page.run("document.activeElement.id") == "filter"
        refused = [error for error in page.errors if "Content Security Policy" in error or "TypeError" in error]
        assert not refused
    finally:
        server.end()
        os.close(trainer)


def press_button(page: Page, words: str) -> None:
    """Once it is there."""
    found = f"[...document.querySelectorAll('#run button')].find((one) => one.textContent.startsWith('{words}'))"
    page.wait(found, 60)
    page.run(f"{found}.click()")


def test_play_stop_resume_evaluate_and_extend_a_real_run(tmp_path, page):
    folder = tmp_path / "runs"
    words = ["train", "cartpole-dqn", "--total-env-steps", "2M", "--run-dir", str(folder / "run"), "--quiet"]
    trainer = subprocess.Popen(
        [sys.executable, "-m", "hotloop", *words], stderr=subprocess.DEVNULL, env=dict(os.environ)
    )
    server = None
    try:
        while not (folder / "run" / "events.jsonl").exists():
            assert trainer.poll() is None
        server = Server(folder, "--control")
        page.open(server.link)
        page.wait(f"{ROWS} === 1", 60)
        page.run("location.hash = document.querySelector('#table a').getAttribute('href')")
        page.wait("document.querySelector('#run .badge.running')", 60)
        press_button(page, "stop")
        assert trainer.wait(200) is not None
        page.wait("document.querySelector('#run .badge.stopped')", 200)

        press_button(page, "play an episode")
        page.wait("document.querySelector('.frame-picture')?.naturalWidth > 0", 400)

        press_button(page, "resume")
        page.wait("document.querySelector('#run .badge.running')", 200)
        press_button(page, "stop")
        page.wait("document.querySelector('#run .badge.stopped')", 200)

        press_button(page, "evaluate")
        page.wait("document.querySelector('.jobs').innerText.includes('over 100 episodes')", 200)

        page.run("document.querySelector('[aria-label=\"env steps to go on to\"]').value = '3000000'")
        press_button(page, "extend")
        page.wait("document.querySelector('#run .badge.running')", 200)
        assert "3000000" in (folder / "run" / "settings.toml").read_text().replace("_", "")
        press_button(page, "stop")
        page.wait("document.querySelector('#run .badge.stopped')", 200)
    finally:
        if trainer.poll() is None:
            trainer.kill()
        if server is not None:
            server.end()
