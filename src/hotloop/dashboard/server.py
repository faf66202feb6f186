"""The routes of the dashboard, and the server that answers them on this machine.

Every route answers from the library; none takes a path. What can change something is made only where `--control` asks
for it: without, those routes do not exist.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hotloop.core.errors import HotloopError, SettingsError
from hotloop.dashboard.curves import as_csv_file, as_svg_file, curves, request_from, title_of
from hotloop.dashboard.detail import alike, detail, phases_over_time
from hotloop.dashboard.guard import LOOPBACK, PICTURE_POLICY, Guard, Keys
from hotloop.dashboard.jobs import Jobs
from hotloop.dashboard.library import Item, Library, Watcher
from hotloop.dashboard.machine import idle_cores, machine_now, used_by
from hotloop.dashboard.stream import Broadcast
from hotloop.dashboard.table import table
from hotloop.dashboard.verdict import differences, judge
from hotloop.render.html import style

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
_CACHED = 64


class Missing(Exception):
    """There is no such run, job or picture."""


class Dashboard:
    """One folder, its watcher, and the app that shows it."""

    def __init__(
        self, folder: Path, *, control: bool = False, keys: Keys | None = None, hosts: Iterable[str] = LOOPBACK
    ) -> None:
        self.library = Library(folder)
        self.control = control
        self.keys = keys or Keys()
        self.broadcast = Broadcast(self.library)
        self.watcher = Watcher(self.library, self.broadcast.changed)
        self.jobs = Jobs(self._jobs_changed)
        self.routes = [*_reading_routes(self), *(_changing_routes(self) if control else [])]
        self._answers: dict[tuple[str, str], tuple[int, bytes]] = {}
        inner = Starlette(routes=self.routes, lifespan=self._lifespan, exception_handlers=_handlers())
        self.app = Guard(inner, self.keys, hosts)

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.broadcast.attach()
        self.watcher.start()
        try:
            yield
        finally:
            self.close()

    def close(self) -> None:
        self.broadcast.close()
        self.watcher.stop()
        self.jobs.close()
        self.library.index.close()

    def _jobs_changed(self) -> None:
        self.broadcast.tell("jobs", {})

    def item(self, request: Request) -> Item:
        found = self.library.get(request.path_params["id"])
        if found is None:
            raise Missing
        return found

    def once(self, request: Request, make: Callable[[], Any]) -> Response:
        """An answer that follows from the address and the state of the files: fifty pages that ask cost one."""
        key, version = (request.url.path, request.url.query), self.library.version
        found = self._answers.get(key)
        if found is None or found[0] != version:
            found = version, json.dumps(make(), separators=(",", ":")).encode()
            if len(self._answers) >= _CACHED:
                self._answers.clear()
            self._answers[key] = found
        return Response(found[1], media_type="application/json")


def _handlers() -> Mapping[Any, Any]:
    async def missing(request: Request, error: Exception) -> Response:
        return _json({"error": "there is no such thing here"}, 404)

    async def mistaken(request: Request, error: Exception) -> Response:
        assert isinstance(error, HotloopError)
        return _json({"error": error.message, "hint": error.hint}, 400)

    return {Missing: missing, 404: missing, HotloopError: mistaken}


def _json(data: Any, status: int = 200) -> Response:
    return Response(json.dumps(data, separators=(",", ":")), status, media_type="application/json")


def _ids(request: Request) -> list[str]:
    return request.query_params.get("runs", "").split(",")[:400]


def _reading_routes(dashboard: Dashboard) -> list[Route]:
    library, jobs = dashboard.library, dashboard.jobs

    def page(request: Request) -> Response:
        return Response(page_file("index.html"), media_type="text/html")

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            raise Missing
        return Response(page_file(name), media_type=STATIC[name])

    def get_table(request: Request) -> Response:
        return dashboard.once(request, lambda: table(library, dashboard.control))

    def get_curves(request: Request) -> Response:
        asked = request_from(request.query_params)
        return dashboard.once(request, lambda: curves(library, asked))

    def curves_svg(request: Request) -> Response:
        asked = request_from(request.query_params)
        content = as_svg_file(library, asked).encode("utf-8", "replace")
        return _file(content, "image/svg+xml", f"{title_of(asked)}.svg")

    def curves_csv(request: Request) -> Response:
        asked = request_from(request.query_params)
        rows = (row.encode("utf-8", "replace") for row in as_csv_file(library, asked))
        headers = _download(f"{title_of(asked)}.csv")
        return StreamingResponse(rows, media_type="text/csv; charset=utf-8", headers=headers)

    def verdict(request: Request) -> Response:
        return dashboard.once(request, lambda: judge(library, _ids(request)))

    def settings(request: Request) -> Response:
        return dashboard.once(request, lambda: differences(library, _ids(request)))

    def run(request: Request) -> Response:
        item = dashboard.item(request)
        return dashboard.once(request, lambda: detail(library, item))

    def run_phases(request: Request) -> Response:
        item, asked = dashboard.item(request), request_from(request.query_params)
        return dashboard.once(request, lambda: phases_over_time(library, item, asked.x))

    def run_alike(request: Request) -> Response:
        item = dashboard.item(request)
        return dashboard.once(request, lambda: alike(library, item))

    def run_machine(request: Request) -> Response:
        item, machine = dashboard.item(request), machine_now()
        used = used_by(library.path_of(item)) if item.kind == "run" else None
        return _json({"machine": machine, "run": used, "idle": idle_cores(used, machine["cores"])})

    def machine(request: Request) -> Response:
        return _json(machine_now())

    def list_jobs(request: Request) -> Response:
        return _json([job.as_data() for job in jobs.all()])

    def frame(request: Request) -> Response:
        job = jobs.get(request.path_params["job"])
        frames = job.frames() if job is not None else []
        number = request.path_params["number"]
        if not 0 <= number < len(frames):
            raise Missing
        return Response(frames[number].read_bytes(), media_type="image/png")

    async def play(request: Request) -> Response:
        """Plays in a folder of its own; nothing of the run changes."""
        item, given = dashboard.item(request), await body_of(request)
        if item.kind != "run":
            raise Missing
        checkpoint = str(given.get("checkpoint", ""))
        if not all(letter in "0123456789-" for letter in checkpoint) or checkpoint.startswith("-"):
            raise SettingsError("`checkpoint` is no name of a checkpoint")
        seed = whole(given, "seed", 0, 0, 2**31)
        return _json(jobs.play(item.id, library.path_of(item), checkpoint, seed).as_data())

    async def stream(request: Request) -> Response:
        last = request.headers.get("last-event-id", "")
        return StreamingResponse(dashboard.broadcast.listen(last), media_type="text/event-stream")

    return [
        Route("/", page),
        Route("/static/{name:path}", static),
        Route("/api/table", get_table),
        Route("/api/curves", get_curves),
        Route("/api/curves.svg", curves_svg),
        Route("/api/curves.csv", curves_csv),
        Route("/api/verdict", verdict),
        Route("/api/settings", settings),
        Route("/api/machine", machine),
        Route("/api/stream", stream),
        Route("/api/jobs", list_jobs),
        Route("/api/jobs/{job}/frames/{number:int}", frame),
        Route("/api/runs/{id}", run),
        Route("/api/runs/{id}/phases", run_phases),
        Route("/api/runs/{id}/alike", run_alike),
        Route("/api/runs/{id}/machine", run_machine),
        Route("/api/runs/{id}/play", play, methods=["POST"]),
    ]


def _changing_routes(dashboard: Dashboard) -> list[Route]:
    """With `--control` alone."""
    library, jobs = dashboard.library, dashboard.jobs

    def run_of(request: Request) -> tuple[str, Path]:
        item = dashboard.item(request)
        if item.kind != "run":
            raise Missing
        return item.id, library.path_of(item)

    async def stop(request: Request) -> Response:
        return _json(jobs.stop(*run_of(request)).as_data())

    async def resume(request: Request) -> Response:
        return _json(jobs.resume(*run_of(request)).as_data())

    async def extend(request: Request) -> Response:
        total = whole(await body_of(request), "total_env_steps", 0, 1, 10**15)
        return _json(jobs.resume(*run_of(request), total_env_steps=total).as_data())

    async def evaluate(request: Request) -> Response:
        episodes = whole(await body_of(request), "episodes", 100, 1, 10_000)
        return _json(jobs.evaluate(*run_of(request), episodes=episodes).as_data())

    endpoints = {"stop": stop, "resume": resume, "extend": extend, "evaluate": evaluate}
    return [Route(f"/api/runs/{{id}}/{name}", endpoint, methods=["POST"]) for name, endpoint in endpoints.items()]


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


def _file(content: bytes, kind: str, name: str) -> Response:
    headers = {**_download(name), "content-security-policy": PICTURE_POLICY}
    return Response(content, media_type=kind, headers=headers)


def _download(name: str) -> dict[str, str]:
    plain = "".join(letter if letter.isascii() and letter.isalnum() or letter in ". " else "-" for letter in name)
    return {"content-disposition": f'attachment; filename="{plain.replace(" ", "-").lower()}"'}


@lru_cache(maxsize=32)
def page_file(name: str) -> bytes:
    """Of the package; `dashboard.css` begins with the style of every page."""
    content = resources.files(__package__).joinpath("page").joinpath(*name.split("/")).read_bytes()
    return style().encode() + b"\n" + content if name == "dashboard.css" else content


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; with port 0 on 8127 where that is free, otherwise on any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for attempt in [port] if port else [8127, 0]:
        opened = socket.socket(family, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((host, attempt))
        except OSError as error:
            opened.close()
            if attempt == port or attempt == 0:
                raise SettingsError(
                    f"cannot listen on {host} port {attempt}: {error.strerror}", "choose another with `--port`"
                ) from None
            continue
        opened.listen(128)
        return opened
    raise AssertionError
