"""With `--control` the page lets `hotloop` work: evaluate and extend, really executed on a small run. Stop, resume and
play are executed in a browser (test_dashboard_browser.py)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra `dashboard` is not installed")

from hotloop.cli.main import main
from hotloop.dashboard.curves import as_csv_file, as_svg_file, request_from
from hotloop.dashboard.library import Library
from hotloop.dashboard.server import Dashboard
from tests.dashboard.asking import HERE, Browser
from tests.dashboard.synthetic import write_run


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory, own_cache):
    folder = tmp_path_factory.mktemp("controlled")
    made = Dashboard(folder, control=True)
    patch = pytest.MonkeyPatch()  # the index lies in a cache of its own by now; kernels are taken from the usual one
    patch.delenv("XDG_CACHE_HOME") if own_cache is None else patch.setenv("XDG_CACHE_HOME", own_cache)
    words = "cartpole-dqn --total-env-steps 600 --learning-starts 100 --network.hidden 8 --quiet"
    words += f" --evaluation.episodes 2 --evaluation.final-episodes 2 --run-dir {folder / 'run'}"
    assert main(["train", *words.split()]) == 0
    made.library.scan()
    yield made
    made.close()
    patch.undo()


def done(dashboard: Dashboard, browser: Browser, action: str, data: dict[str, int]) -> dict[str, object]:
    """Asks for it, waits until it has ended, and gives the job as the page sees it."""
    run = dashboard.library.items()[0].id
    asked = browser.post(f"/api/runs/{run}/{action}", data)
    assert asked.status == 200, asked.text
    end = time.monotonic() + 120
    while time.monotonic() < end:
        job = next(job for job in browser.get("/api/jobs").json() if job["id"] == asked.json()["id"])
        if job["state"] != "running":
            return job
        time.sleep(0.1)
    raise AssertionError("it did not end")


def test_evaluate_and_extend_are_executed(dashboard):
    browser = Browser(dashboard.app, {"origin": HERE}, {dashboard.keys.cookie: dashboard.keys.session})
    run = Path(dashboard.library.folder) / "run"

    judged = done(dashboard, browser, "evaluate", {"episodes": 3})
    assert judged["state"] == "done", judged["said"]
    assert judged["result"]["episodes"] == 3
    assert 0 < judged["result"]["mean_return"] <= 500

    extended = done(dashboard, browser, "extend", {"total_env_steps": 900})
    assert extended["state"] == "done", extended["said"]
    assert json.loads((run / "result.json").read_text())["env_steps"] >= 900
    dashboard.library.scan()
    assert browser.get("/api/table").json()["runs"][0]["env_steps"] >= 900

    refused = browser.post(f"/api/runs/{dashboard.library.items()[0].id}/stop")
    assert refused.status == 400  # nobody trains it


def test_the_shares_of_phases_download_as_svg_and_csv(tmp_path):
    write_run(tmp_path / "run", rows=20)
    library = Library(tmp_path)
    library.scan()
    item = library.items()[0]
    request = request_from(f"runs={item.id}&x=clock&y=phases")
    rows = [row.split(",") for row in "".join(as_csv_file(library, request)).splitlines()]
    assert "y=phases" in rows[0][0]
    assert rows[1][2:] == ["phase", '"seconds', ' all of them"', "share"]
    by_end: dict[str, float] = {}
    for row in rows[2:]:
        by_end[row[3]] = by_end.get(row[3], 0.0) + float(row[4])
    assert all(abs(total - 1) < 1e-3 for total in by_end.values())  # every moment belongs to one phase
    svg = as_svg_file(library, request)
    library.index.close()
    assert "update" in svg
    assert "y=phases" in svg


def test_the_server_starts_without_what_trains_and_without_scipy(tmp_path):
    """Imports were most of the time until the page was there."""
    write_run(tmp_path / "runs" / "a" / "seed-0", seed=0)
    write_run(tmp_path / "runs" / "a" / "seed-1", seed=1)
    program = (
        "import sys\nfrom pathlib import Path\nimport uvicorn\nfrom hotloop.dashboard.server import Dashboard\n"
        "from hotloop.dashboard.curves import curves, request_from\nfrom hotloop.dashboard.table import table\n"
        f"made = Dashboard(Path({str(tmp_path / 'runs')!r}))\nmade.library.scan()\n"
        "ids = ','.join(run['id'] for run in table(made.library)['runs'])\n"
        "assert curves(made.library, request_from(f'runs={ids}'))['arms'][0]['mean']\nmade.close()\n"
        "heavy = ('torch', 'numba', 'scipy', 'gymnasium', 'PIL', 'hotloop.learners')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
