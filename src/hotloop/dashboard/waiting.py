"""Who holds a connection: few places for those that have shown nothing yet, the others for those that have the token.

A connection costs a file descriptor and a place under uvicorn's limit from the moment it is opened, long before the
guard can ask for a token. So it is only waiting until a request of it has passed the guard. Where more wait than there
are places, the one that has waited longest is closed: the newest may be the owner's browser.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from hotloop.dashboard.guard import ADMIT

MOST_WAITING = 64
MOST_CONNECTIONS = 600
"""All together; the owner's browser holds about six for each open page."""
HEADER_SECONDS = 10.0
"""From the opening of a connection until a request with the token has come."""


class Connection(H11Protocol):
    """A connection of uvicorn's that is closed unless the guard lets a request of it in."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, ADMIT: self._admit}, _loop)
        self.deadline: asyncio.TimerHandle | None = None
        """Of a connection that waits; None once it has been let in."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        waiting = [other for other in self.connections if isinstance(other, Connection) and other.deadline]
        super().connection_made(transport)
        self.deadline = self.loop.call_later(HEADER_SECONDS, transport.abort)
        if len(waiting) >= MOST_WAITING:
            min(waiting, key=_end_of_waiting).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._admit()
        super().connection_lost(exc)

    def drop(self) -> None:
        """At once and whatever is still to be sent; its place is free when this returns."""
        self._admit()
        self.connections.discard(self)
        self.transport.abort()

    def _admit(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


def _end_of_waiting(connection: Connection) -> float:
    assert connection.deadline is not None
    return connection.deadline.when()
