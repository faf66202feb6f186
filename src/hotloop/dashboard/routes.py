"""Every address of the dashboard and the function that answers it: `READING`, and with `--control` `CHANGING` too.

Each function is given the dashboard and the request. None takes a path: runs are named by their ids.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from hotloop.core.errors import SettingsError
from hotloop.dashboard.curves import as_csv_file, as_svg_file, curves, request_from, title_of
from hotloop.dashboard.detail import alike, detail
from hotloop.dashboard.guard import PICTURE_POLICY
from hotloop.dashboard.library import Item
from hotloop.dashboard.machine import idle_cores, machine_now, used_by
from hotloop.dashboard.phases import phases_over_time
from hotloop.dashboard.table import table
from hotloop.dashboard.verdict import differences, judge
from hotloop.render.html import style

if TYPE_CHECKING:
    from hotloop.dashboard.server import Dashboard

STATIC = {
    "icon.svg": "image/svg+xml",
    "dashboard.css": "text/css",
    "dashboard.js": "text/javascript",
    "elements.js": "text/javascript",
    "charts.js": "text/javascript",
    "table.js": "text/javascript",
    "run.js": "text/javascript",
    "uplot/uPlot.iife.min.js": "text/javascript",
    "uplot/uPlot.min.css": "text/css",
}
MOST_BODY = 4_096


class Missing(Exception):
    """There is no such run, job or picture."""


def as_json(data: Any, status: int = 200) -> Response:
    return Response(json.dumps(data, separators=(",", ":")), status, media_type="application/json")


# The page


def page(dashboard: Dashboard, request: Request) -> Response:
    return Response(page_file("index.html"), media_type="text/html")


def static(dashboard: Dashboard, request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise Missing
    return Response(page_file(name), media_type=STATIC[name])


@lru_cache(maxsize=32)
def page_file(name: str) -> bytes:
    """Of the package; `dashboard.css` begins with the style of every page."""
    content = resources.files(__package__).joinpath("page").joinpath(*name.split("/")).read_bytes()
    return style().encode() + b"\n" + content if name == "dashboard.css" else content


# Many runs


def get_table(dashboard: Dashboard, request: Request) -> Response:
    return dashboard.once(request, lambda: table(dashboard.library, dashboard.control))


def get_curves(dashboard: Dashboard, request: Request) -> Response:
    asked = request_from(request.query_params)
    return dashboard.once(request, lambda: curves(dashboard.library, asked))


def curves_svg(dashboard: Dashboard, request: Request) -> Response:
    asked = request_from(request.query_params)
    return _svg(as_svg_file(dashboard.library, asked), title_of(asked))


def curves_csv(dashboard: Dashboard, request: Request) -> Response:
    asked = request_from(request.query_params)
    rows = (row.encode("utf-8", "replace") for row in as_csv_file(dashboard.library, asked))
    headers = _download(f"{title_of(asked)}.csv")
    return StreamingResponse(rows, media_type="text/csv; charset=utf-8", headers=headers)


def verdict(dashboard: Dashboard, request: Request) -> Response:
    return dashboard.once(request, lambda: judge(dashboard.library, _ids(request)))


def settings(dashboard: Dashboard, request: Request) -> Response:
    return dashboard.once(request, lambda: differences(dashboard.library, _ids(request)))


def machine(dashboard: Dashboard, request: Request) -> Response:
    return as_json(machine_now())


async def stream(dashboard: Dashboard, request: Request) -> Response:
    last = request.headers.get("last-event-id", "")
    return StreamingResponse(dashboard.broadcast.listen(last), media_type="text/event-stream")


# One run


def run(dashboard: Dashboard, request: Request) -> Response:
    item = _item(dashboard, request)
    return dashboard.once(request, lambda: detail(dashboard.library, item))


def run_phases(dashboard: Dashboard, request: Request) -> Response:
    item, asked = _item(dashboard, request), request_from(request.query_params)
    return dashboard.once(request, lambda: phases_over_time(dashboard.library, item, asked.x))


def run_alike(dashboard: Dashboard, request: Request) -> Response:
    item = _item(dashboard, request)
    return dashboard.once(request, lambda: alike(dashboard.library, item))


def run_machine(dashboard: Dashboard, request: Request) -> Response:
    item, now = _item(dashboard, request), machine_now()
    used = used_by(dashboard.library.path_of(item)) if item.kind == "run" else None
    return as_json({"machine": now, "run": used, "idle": idle_cores(used, now["cores"])})


# What `hotloop` does for the page


def list_jobs(dashboard: Dashboard, request: Request) -> Response:
    return as_json([job.as_data() for job in dashboard.jobs.all()])


def frame(dashboard: Dashboard, request: Request) -> Response:
    job = dashboard.jobs.get(request.path_params["job"])
    frames = job.frames() if job is not None else []
    number = request.path_params["number"]
    if not 0 <= number < len(frames):
        raise Missing
    return Response(frames[number].read_bytes(), media_type="image/png")


async def play(dashboard: Dashboard, request: Request) -> Response:
    """Plays in a folder of its own; nothing of the run changes."""
    id, path = _run_of(dashboard, request)
    given = await body_of(request)
    checkpoint = str(given.get("checkpoint", ""))
    if not all(letter in "0123456789-" for letter in checkpoint) or checkpoint.startswith("-"):
        raise SettingsError("`checkpoint` is no name of a checkpoint")
    seed = whole(given, "seed", 0, 0, 2**31)
    return as_json(dashboard.jobs.play(id, path, checkpoint, seed).as_data())


async def stop(dashboard: Dashboard, request: Request) -> Response:
    return as_json(dashboard.jobs.stop(*_run_of(dashboard, request)).as_data())


async def resume(dashboard: Dashboard, request: Request) -> Response:
    return as_json(dashboard.jobs.resume(*_run_of(dashboard, request)).as_data())


async def extend(dashboard: Dashboard, request: Request) -> Response:
    total = whole(await body_of(request), "total_env_steps", 0, 1, 10**15)
    return as_json(dashboard.jobs.resume(*_run_of(dashboard, request), total_env_steps=total).as_data())


async def evaluate(dashboard: Dashboard, request: Request) -> Response:
    episodes = whole(await body_of(request), "episodes", 100, 1, 10_000)
    return as_json(dashboard.jobs.evaluate(*_run_of(dashboard, request), episodes=episodes).as_data())


Answer = Callable[["Dashboard", Request], Response | Awaitable[Response]]
READING: dict[tuple[str, str], Answer] = {
    ("GET", "/"): page,
    ("GET", "/static/{name:path}"): static,
    ("GET", "/api/table"): get_table,
    ("GET", "/api/curves"): get_curves,
    ("GET", "/api/curves.svg"): curves_svg,
    ("GET", "/api/curves.csv"): curves_csv,
    ("GET", "/api/verdict"): verdict,
    ("GET", "/api/settings"): settings,
    ("GET", "/api/machine"): machine,
    ("GET", "/api/stream"): stream,
    ("GET", "/api/jobs"): list_jobs,
    ("GET", "/api/jobs/{job}/frames/{number:int}"): frame,
    ("GET", "/api/runs/{id}"): run,
    ("GET", "/api/runs/{id}/phases"): run_phases,
    ("GET", "/api/runs/{id}/alike"): run_alike,
    ("GET", "/api/runs/{id}/machine"): run_machine,
    ("POST", "/api/runs/{id}/play"): play,
}
CHANGING: dict[tuple[str, str], Answer] = {
    ("POST", "/api/runs/{id}/stop"): stop,
    ("POST", "/api/runs/{id}/resume"): resume,
    ("POST", "/api/runs/{id}/extend"): extend,
    ("POST", "/api/runs/{id}/evaluate"): evaluate,
}
"""With `--control` alone; without it these addresses do not exist."""


# What a request names


def _ids(request: Request) -> list[str]:
    return request.query_params.get("runs", "").split(",")[:400]


def _item(dashboard: Dashboard, request: Request) -> Item:
    found = dashboard.library.get(request.path_params["id"])
    if found is None:
        raise Missing
    return found


def _run_of(dashboard: Dashboard, request: Request) -> tuple[str, Path]:
    item = _item(dashboard, request)
    if item.kind != "run":
        raise Missing
    return item.id, dashboard.library.path_of(item)


async def body_of(request: Request) -> dict[str, Any]:
    """A small JSON object, or nothing."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MOST_BODY:
            raise SettingsError("the request is too long")
    try:
        data = json.loads(content) if content else {}
    except (ValueError, RecursionError):
        raise SettingsError("the request is no JSON") from None
    if not isinstance(data, dict):
        raise SettingsError("the request is no JSON object")
    return data


def whole(given: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise SettingsError(f"`{name}` is no whole number from {least:,} to {most:,}")
    return value


def _svg(text: str, title: str) -> Response:
    headers = {**_download(f"{title}.svg"), "content-security-policy": PICTURE_POLICY}
    return Response(text.encode("utf-8", "replace"), media_type="image/svg+xml", headers=headers)


def _download(name: str) -> dict[str, str]:
    plain = "".join(letter if (letter.isascii() and letter.isalnum()) or letter in ". " else "-" for letter in name)
    return {"content-disposition": f'attachment; filename="{plain.replace(" ", "-").lower()}"'}
