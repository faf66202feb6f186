"""The app behind the guard: one folder, its watcher, its routes, and the socket it listens on."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hotloop.core.errors import HotloopError, SettingsError
from hotloop.dashboard.guard import LOOPBACK, Keys, RequestGuard
from hotloop.dashboard.jobs import Jobs
from hotloop.dashboard.library import Library, Watcher
from hotloop.dashboard.routes import CHANGING, READING, Missing, as_json
from hotloop.dashboard.stream import Broadcast

_CACHED = 64
BACKLOG = 512
"""Connections that are accepted in one go, so that a flood does not take all file descriptors at once."""


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
        answers = READING | CHANGING if control else READING
        self.routes = [
            Route(path, partial(answer, self), methods=[method]) for (method, path), answer in answers.items()
        ]
        self._answers: dict[tuple[str, str], tuple[int, bytes]] = {}
        inner = Starlette(routes=self.routes, lifespan=self._lifespan, exception_handlers=_handlers())
        self.app = RequestGuard(inner, self.keys, hosts)

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
        return as_json({"error": "there is no such thing here"}, 404)

    async def mistaken(request: Request, error: Exception) -> Response:
        assert isinstance(error, HotloopError)
        return as_json({"error": error.message, "hint": error.hint}, 400)

    return {Missing: missing, 404: missing, HotloopError: mistaken}


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
        opened.listen(BACKLOG)
        return opened
    raise AssertionError
