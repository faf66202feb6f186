"""The stream of changes: each is put into words once, a slow page is told to ask again, one that left is forgotten."""

from __future__ import annotations

import asyncio
import json

import pytest

pytest.importorskip("starlette", reason="the extra `dashboard` is not installed")

from hotloop.dashboard.index import Index
from hotloop.dashboard.library import Library
from hotloop.dashboard.stream import LONGEST_QUEUE, Broadcast
from tests.dashboard.synthetic import write_run


@pytest.fixture
def library(tmp_path):
    write_run(tmp_path / "one", rows=3, finished=False)
    made = Library(tmp_path, Index(None))
    made.scan()
    return made


def grow(library: Library, env_steps: int) -> None:
    with open(library.folder / "one" / "events.jsonl", "a") as stream:
        stream.write(json.dumps({"event": "progress", "env_steps": env_steps, "mean_return": 1.0}) + "\n")
    library.scan()


async def next_rows(stream) -> dict:
    while True:
        message = (await asyncio.wait_for(anext(stream), 20)).decode()
        if "event: rows" in message:
            return json.loads(message.partition("data: ")[2])


def test_fifty_pages_are_told_of_a_change_that_was_put_into_words_once(library, monkeypatch):
    made = []

    async def scene():
        broadcast = Broadcast(library)
        broadcast.attach()
        original = broadcast._message
        monkeypatch.setattr(broadcast, "_message", lambda since: made.append(since) or original(since))
        streams = [broadcast.listen() for _ in range(50)]
        for stream in streams:
            await anext(stream)
        assert broadcast.clients == 50
        await asyncio.to_thread(grow, library, 200_000)
        broadcast.changed()
        rows = await asyncio.gather(*map(next_rows, streams))
        for stream in streams:
            await stream.aclose()
        return rows, broadcast.clients

    rows, left = asyncio.run(scene())
    (id,) = [item.id for item in library.items()]
    assert [row["runs"][id]["env_steps"] for row in rows] == [200_000.0] * 50
    assert len(made) == 1
    assert left == 0


def test_a_page_that_does_not_read_is_told_to_ask_again(library):
    async def scene():
        broadcast = Broadcast(library)
        broadcast.attach()
        stream = broadcast.listen()
        await anext(stream)
        for number in range(3 * LONGEST_QUEUE):
            broadcast.tell("jobs", {"number": number})
        await asyncio.sleep(0.05)
        heard = [await anext(stream)]
        await stream.aclose()
        return heard

    assert asyncio.run(scene()) == [b"event: again\ndata: {}\n\n"]


def test_a_page_that_comes_back_to_another_server_asks_for_everything(library):
    async def scene(last):
        broadcast = Broadcast(library)
        broadcast.attach()
        stream = broadcast.listen(last)
        first = await anext(stream)
        if last:
            first = await anext(stream)
        await stream.aclose()
        return first

    assert asyncio.run(scene("")) == b"retry: 1000\n\n"
    assert asyncio.run(scene("other-7")) == b"event: again\ndata: {}\n\n"


def test_the_end_of_the_server_ends_every_stream(library):
    async def scene():
        broadcast = Broadcast(library)
        broadcast.attach()
        stream = broadcast.listen()
        await anext(stream)
        broadcast.close()
        return [message async for message in stream]

    assert asyncio.run(scene()) == []
