"""The server behind a real socket: its owner is answered whatever connections stand there without the token."""

from __future__ import annotations

import contextlib
import http.client
import resource
import socket
from types import SimpleNamespace

import pytest

pytest.importorskip("uvicorn", reason="the extra `dashboard` is not installed")

from hotloop.dashboard.guard import ADMIT
from hotloop.dashboard.server import Dashboard
from hotloop.dashboard.waiting import HEADER_SECONDS, MOST_WAITING, Connection
from tests.dashboard.asking import Browser
from tests.dashboard.served import Server
from tests.dashboard.synthetic import write_run

IDLE = 1_000
PROMPT = {
    "nothing": b"",
    "half a header": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "a request without the token": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


@pytest.fixture
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Owner:
    """Asks as the page does, every request on a connection of its own."""

    def __init__(self, server: Server, opened: contextlib.ExitStack) -> None:
        self._port, self._opened, self._cookie = server.port, opened, ""
        let_in = self.ask(f"/?{server.link.partition('?')[2]}")
        assert let_in.status == 200
        self._cookie = let_in.headers["set-cookie"].partition(";")[0]

    def ask(self, path: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        self._opened.callback(connection.close)
        connection.request("GET", path, headers={"Cookie": self._cookie})
        return self._opened.enter_context(connection.getresponse())


@pytest.mark.parametrize("sent", PROMPT.values(), ids=PROMPT)
def test_a_thousand_idle_connections_leave_the_owner_answered(tmp_path, many_files, sent):
    write_run(tmp_path / "runs" / "one", rows=3)
    with contextlib.ExitStack() as opened:
        server = Server(tmp_path / "runs", most_files=1_024)
        opened.callback(server.end)
        owner = Owner(server, opened)
        stream = owner.ask("/api/stream")
        for _ in range(IDLE):
            idle = opened.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            idle.sendall(sent)
        for _ in range(3):
            table = owner.ask("/api/table")
            assert table.status == 200
            assert b"one" in table.read()
        assert stream.fp.peek(1)  # what was let in before them stays


def test_the_way_from_another_machine_names_the_port_that_was_taken(tmp_path):
    """8127 is taken here, so that another is."""
    (tmp_path / "runs").mkdir()
    with contextlib.ExitStack() as opened, open(tmp_path / "errors", "w") as errors:
        for _ in range(2):
            server = Server(tmp_path / "runs", errors=errors)
            opened.callback(server.end)
        assert Owner(server, opened).ask("/api/table").status == 200  # by now it has been said
    assert server.port != 8127
    assert f"`ssh -L {server.port}:localhost:{server.port} HOST`" in (tmp_path / "errors").read_text()


class Loop:
    """As much of an event loop as a connection asks for, with a clock that a test moves."""

    def __init__(self) -> None:
        self.now, self.timers = 0.0, []

    def call_later(self, seconds, call):
        timer = Timer(self.now + seconds, call)
        self.timers.append(timer)
        return timer

    def move(self, seconds: float) -> None:
        self.now += seconds
        for timer in self.timers:
            if timer.end <= self.now and not timer.cancelled:
                timer.cancelled = True
                timer.call()


class Timer:
    def __init__(self, end, call) -> None:
        self.end, self.call, self.cancelled = end, call, False

    def cancel(self) -> None:
        self.cancelled = True

    def when(self) -> float:
        return self.end


class Transport:
    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True

    def get_extra_info(self, name: str):
        return None


class House:
    """Connections of one server, none of which has a network."""

    def __init__(self) -> None:
        from uvicorn.config import Config
        from uvicorn.server import ServerState

        self.config, self.state, self.loop = Config(lambda: None, log_config=None, ws="none"), ServerState(), Loop()

    def open(self) -> SimpleNamespace:
        connection, transport = Connection(self.config, self.state, {}, self.loop), Transport()
        connection.connection_made(transport)
        return SimpleNamespace(connection=connection, transport=transport, admit=connection.app_state[ADMIT])


def test_who_brings_no_token_is_closed_at_the_deadline_and_who_does_is_not():
    house = House()
    idle, owner = house.open(), house.open()
    owner.admit()
    house.loop.move(HEADER_SECONDS - 1)
    assert not idle.transport.aborted
    house.loop.move(2)
    assert idle.transport.aborted
    assert not owner.transport.aborted


def test_the_one_that_waited_longest_makes_room_and_nobody_who_was_let_in():
    house = House()
    owner = house.open()
    owner.admit()
    opened = []
    for _ in range(3 * MOST_WAITING):
        opened.append(house.open())
        house.loop.move(0.001)
    assert [each.transport.aborted for each in opened] == [True] * 2 * MOST_WAITING + [False] * MOST_WAITING
    assert not owner.transport.aborted
    assert len(house.state.connections) == MOST_WAITING + 1


def test_the_guard_lets_a_connection_stay_only_for_a_request_that_passes(tmp_path):
    write_run(tmp_path / "one", rows=2)
    dashboard, admitted = Dashboard(tmp_path), []

    async def with_state(scope, receive, send):
        await dashboard.app({**scope, "state": {ADMIT: lambda: admitted.append(scope["path"])}}, receive, send)

    stranger = Browser(with_state)
    for path in ("/", "/?token=wrong", "/api/table"):
        assert stranger.get(path).status == 403
    assert stranger.get(f"/?token={dashboard.keys.token}", headers={"host": "evil.example"}).status == 403
    assert not admitted
    assert stranger.get(f"/?token={dashboard.keys.token}").status == 200
    assert stranger.get("/api/table").status == 200
    assert admitted == ["/", "/api/table"]
    dashboard.close()
