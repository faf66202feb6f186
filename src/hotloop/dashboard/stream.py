"""What changed, told to every open page: Server-Sent Events.

One thread looks at the files, however many pages are open, and each change is put into words once. A page that does
not read fast enough is told to ask for everything again, rather than given a queue without end.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

from hotloop.dashboard.library import Library
from hotloop.dashboard.table import changed_rows

MOST_CLIENTS, LONGEST_QUEUE = 256, 8
BEAT_SECONDS = 10.0
"""A line without meaning, so that a page notices when nobody is there any more."""
_AGAIN = b"event: again\ndata: {}\n\n"
_END = b""


class Broadcast:
    def __init__(self, library: Library) -> None:
        self._library = library
        self._boot = secrets.token_hex(4)  # versions of another server mean nothing here
        self._told = library.version
        self._clients: set[asyncio.Queue[bytes]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending = False
        self.closed = False

    def attach(self) -> None:
        """From the loop that will serve."""
        self._loop = asyncio.get_running_loop()

    def changed(self) -> None:
        """From any thread: something is new."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._wake)

    def close(self) -> None:
        self.closed = True
        for queue in self._clients:
            _offer(queue, _END)

    def tell(self, event: str, data: Any) -> None:
        """To all pages, from any thread."""
        message = f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._give, message)

    def _give(self, message: bytes) -> None:
        for queue in self._clients:
            _offer(queue, message)

    def _wake(self) -> None:
        if self._clients and not self._pending:
            self._pending = True
            task = asyncio.ensure_future(self._publish())
            task.add_done_callback(lambda done: done.exception())

    async def _publish(self) -> None:
        try:
            message = await asyncio.to_thread(self._message, self._told)
        finally:
            self._pending = False
        self._give(message)

    def _message(self, since: int) -> bytes:
        rows = changed_rows(self._library, since)
        self._told = rows["version"]
        return f"id: {self._boot}-{self._told}\nevent: rows\ndata: {json.dumps(rows)}\n\n".encode()

    async def listen(self, last_id: str = "") -> AsyncIterator[bytes]:
        """The stream of one page; `last_id` is what it was told last, before its connection broke."""
        if len(self._clients) >= MOST_CLIENTS:
            yield b"event: full\ndata: {}\n\n"
            return
        queue: asyncio.Queue[bytes] = asyncio.Queue(LONGEST_QUEUE)
        self._clients.add(queue)
        try:
            yield b"retry: 1000\n\n"
            if last_id and last_id != f"{self._boot}-{self._library.version}":
                yield _AGAIN
            while not self.closed:
                try:
                    message = await asyncio.wait_for(queue.get(), BEAT_SECONDS)
                except TimeoutError:
                    message = b": still here\n\n"
                if message == _END:
                    return
                yield message
        finally:
            self._clients.discard(queue)

    @property
    def clients(self) -> int:
        return len(self._clients)


def _offer(queue: asyncio.Queue[bytes], message: bytes) -> None:
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        message = _AGAIN if message != _END else _END
    queue.put_nowait(message)
