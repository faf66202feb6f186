"""Every route as the app has it, asked without the token, with a wrong one, for another host, from another site."""

from __future__ import annotations

import asyncio
import html.parser
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="the extra `dashboard` is not installed")

from hotloop.dashboard.guard import Keys
from hotloop.dashboard.routes import STATIC, page_file
from hotloop.dashboard.server import Dashboard
from tests.dashboard.asking import HERE, Browser
from tests.dashboard.synthetic import write_run

PAGE = Path(__file__).parents[2] / "src" / "hotloop" / "dashboard" / "page"


@pytest.fixture(scope="module")
def dashboards(tmp_path_factory):
    """Without and with control; their routes are the same list that the app serves."""
    folder = tmp_path_factory.mktemp("runs")
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    write_run(folder / "one", rows=5)
    made = {control: Dashboard(folder, control=control) for control in (False, True)}
    for dashboard in made.values():
        dashboard.library.scan()
    yield made
    for dashboard in made.values():
        dashboard.close()
    patch.undo()


def addresses(dashboard: Dashboard) -> list[tuple[str, str]]:
    """Every route with its methods, its parameters filled in; and one that does not exist."""
    id = dashboard.library.items()[0].id
    values = {"id": id, "name": "dashboard.js", "job": "abc", "number": "0"}
    found = [("GET", "/no/such/page"), ("GET", "/?runs=x")]
    for route in dashboard.routes:
        path = re.sub(r"\{(\w+)(:\w+)?\}", lambda part: values[part[1]], route.path)
        found += [(method, path) for method in route.methods - {"HEAD"}]
    return found


def let_in(dashboard: Dashboard) -> Browser:
    return Browser(dashboard.app, {"origin": HERE}, {dashboard.keys.cookie: dashboard.keys.session})


@pytest.mark.parametrize("control", [False, True])
def test_every_route_refuses_whoever_has_no_token(dashboards, control):
    dashboard = dashboards[control]
    asked = addresses(dashboard)
    assert len(asked) > 15
    wrong = {dashboard.keys.cookie: Keys().session}
    empty = {dashboard.keys.cookie: ""}
    token_as_cookie = {dashboard.keys.cookie: dashboard.keys.token}
    for method, path in asked:
        for cookies in ({}, wrong, empty, token_as_cookie):
            answer = Browser(dashboard.app, {"origin": HERE}, cookies).ask(method, path)
            assert answer.status == 403, (method, path, cookies)
            assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("control", [False, True])
def test_every_route_refuses_a_wrong_token_even_with_the_cookie(dashboards, control):
    dashboard = dashboards[control]
    for method, path in addresses(dashboard):
        mark = "&" if "?" in path else "?"
        for token in ("", "wrong", dashboard.keys.token[:-1], dashboard.keys.session):
            answer = let_in(dashboard).ask(method, f"{path}{mark}token={token}")
            assert answer.status == 403, (method, path, token)


@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8127",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8127",
        "",
        "user@127.0.0.1",
    ],
)
def test_every_route_refuses_another_host(dashboards, control, host):
    dashboard = dashboards[control]
    for method, path in addresses(dashboard):
        answer = let_in(dashboard).ask(method, path, headers={"host": host, "origin": f"http://{host}"})
        assert answer.status == 403, (method, path)


@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:8127", "http://127.0.0.1:9999", "http://127.0.0.1:8127.evil"],
)
def test_every_route_refuses_another_origin(dashboards, control, origin):
    dashboard = dashboards[control]
    for method, path in addresses(dashboard):
        answer = let_in(dashboard).ask(method, path, headers={"origin": origin})
        assert answer.status == 403, (method, path)
    with_token = Browser(dashboard.app, {"origin": origin}).get(f"/?token={dashboard.keys.token}")
    assert with_token.status == 403


def test_a_page_of_another_site_is_refused_by_what_the_browser_says_of_it(dashboards):
    dashboard = dashboards[False]
    for method, path in addresses(dashboard):
        for site in ("cross-site", "same-site"):
            answer = let_in(dashboard).ask(method, path, headers={"sec-fetch-site": site})
            assert answer.status == 403, (method, path)


def test_what_changes_something_must_say_from_where_it_comes(dashboards):
    dashboard = dashboards[True]
    plain = Browser(dashboard.app, cookies={dashboard.keys.cookie: dashboard.keys.session})
    changing = [(method, path) for method, path in addresses(dashboard) if method == "POST"]
    assert len(changing) == 5
    for method, path in changing:
        assert plain.ask(method, path).status == 403


def test_without_control_no_route_changes_anything(dashboards):
    reading, controlling = ({route.path for route in dashboards[control].routes} for control in (False, True))
    assert {path.rpartition("/")[2] for path in controlling - reading} == {"stop", "resume", "extend", "evaluate"}
    writing = [path for method, path in addresses(dashboards[False]) if method != "GET"]
    assert [path.rpartition("/")[2] for path in writing] == ["play"]  # in a folder of its own
    id = dashboards[False].library.items()[0].id
    for name in ("stop", "resume", "extend", "evaluate"):
        assert let_in(dashboards[False]).post(f"/api/runs/{id}/{name}", {}).status == 404


def test_the_link_lets_a_browser_in_by_a_cookie_that_no_script_reads(dashboards):
    dashboard = dashboards[False]
    fresh = Browser(dashboard.app)
    answer = fresh.get(f"/?token={dashboard.keys.token}")
    assert answer.status == 200
    assert (
        answer.headers["set-cookie"]
        == f"{dashboard.keys.cookie}={dashboard.keys.session}; HttpOnly; SameSite=Strict; Path=/"
    )
    assert dashboard.keys.token not in answer.text
    assert fresh.get("/").status == 200
    assert fresh.get("/api/table", headers={"host": "localhost:9000"}).status == 200  # as behind `ssh -L`
    assert Browser(dashboard.app).get(f"/api/table?token={dashboard.keys.token}").status == 403  # the link alone


@pytest.mark.parametrize(
    "odd",
    [
        '{"a":1}',
        "a[0]=1",
        'x="open',
        "token",
        "=x",
        "a=1,2 b",
        "a b=c",
        "name=\u00fc",
        "expires=Wed, 21 Oct",
        "a=b;;",
        ";",
    ],
)
def test_an_odd_cookie_of_another_program_locks_nobody_out(dashboards, odd):
    """All programs on localhost share one jar."""
    keys = dashboards[False].keys
    ours = f"{keys.cookie}={keys.session}"
    old = f"{keys.cookie}=of-another-folder"
    for cookies in (f"{odd}; {ours}", f"{ours}; {odd}", f"{odd};{ours};{odd}", f"{old}; {odd}; {ours}"):
        answer = Browser(dashboards[False].app, {"cookie": cookies}).get("/api/table")
        assert answer.status == 200, cookies
    for cookies in (
        odd,
        f"{odd}; {old}",
        f"{odd}; x{ours}",
        f"{odd}; {ours}x",
        f"{odd}; {keys.cookie}; {keys.session}",
    ):
        answer = Browser(dashboards[False].app, {"cookie": cookies}).get("/api/table")
        assert answer.status == 403, cookies


def test_every_answer_forbids_what_the_page_does_not_need(dashboards):
    dashboard = dashboards[False]
    reader = let_in(dashboard)
    for method, path in addresses(dashboard):
        if path == "/api/stream":
            continue
        answer = reader.ask(method, path, {} if method == "POST" else None)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-inline" not in policy or answer.headers["content-type"] == "image/svg+xml"
        assert "unsafe-eval" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_a_websocket_is_refused(dashboards):
    sent = []

    async def send(message):
        sent.append(message)

    dashboard = dashboards[False]
    cookie = f"{dashboard.keys.cookie}={dashboard.keys.session}".encode()
    scope = {"type": "websocket", "path": "/api/stream", "headers": [(b"host", b"localhost"), (b"cookie", cookie)]}
    asyncio.run(dashboard.app(scope, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


@given(st.text(max_size=60) | st.sampled_from(["../", "..%2f" * 8 + "etc/passwd", "/etc/passwd", "....//", "\0", "~"]))
def test_no_path_leaves_the_folder(dashboards, text):
    """Pages ask by id; whatever else stands there is not found."""
    dashboard = dashboards[False]
    reader = let_in(dashboard)
    for path in ("/static/{}", "/api/runs/{}", "/api/runs/{}/phases", "/api/jobs/{}/frames/0"):
        for written in (quote(text, safe=""), quote(text, safe="/.")):
            answer = reader.get(path.format(written))
            assert answer.status in (404, 405, 307) or (text in ("", "/") or text in STATIC), (path, text)
            assert b"root:" not in answer.content


def test_a_link_in_the_place_of_a_file_is_not_read(dashboards, tmp_path):
    run = write_run(tmp_path / "runs" / "one", rows=2, finished=False)
    secret = tmp_path / "secret"
    secret.write_text('{"event":"progress","env_steps":1,"mean_return":123456}\n')
    (run / "events.jsonl").unlink()
    (run / "events.jsonl").symlink_to(secret)
    dashboard = Dashboard(tmp_path / "runs")
    dashboard.library.scan()
    assert b"123456" not in let_in(dashboard).get("/api/table").content
    dashboard.close()


def test_the_page_makes_no_markup_of_text():
    """Names go in as text: none of the ways by which a string becomes HTML or code is used."""
    for file in PAGE.glob("*.js"):
        text = file.read_text()
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
        ):
            assert word not in text, f"{file.name} uses {word}"


class Scripts(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found: list[dict[str, str | None]] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag in ("script", "link"):
            self.found.append(given)
        self.inline += [name for name in given if name.startswith("on") or name == "style"]


def test_the_page_asks_for_nothing_but_its_own_files():
    parser = Scripts()
    parser.feed((PAGE / "index.html").read_text())
    asked = {(given.get("src") or given.get("href") or "").removeprefix("/static/") for given in parser.found}
    assert asked <= set(STATIC)
    assert not parser.inline
    assert {path.name for path in PAGE.iterdir() if path.is_file()} - {"index.html"} <= set(STATIC)
    assert b"MIT" in (PAGE / "uplot" / "LICENSE").read_bytes()
    for name in STATIC:
        assert page_file(name)


HOSTILE = "<img src=x onerror=alert(1)>"


@given(name=st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=20))
def test_no_name_runs_as_html_and_no_file_of_a_chart_is_broken_by_it(name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    place = f"x{HOSTILE.replace('/', '')}{name}"[:60]
    write_run(folder / place, rows=3, finished=False)
    dashboard = Dashboard(folder)
    dashboard.library.scan()
    reader = let_in(dashboard)
    (id,) = [item.id for item in dashboard.library.items()] or [""]
    if id:
        table = reader.get("/api/table")
        assert table.headers["content-type"] == "application/json"
        assert table.json()["runs"][0]["name"] == place
        picture = reader.get("/api/curves.svg", runs=id)
        assert b"<img" not in picture.content
        assert "sandbox" in picture.headers["content-security-policy"]
        ElementTree.fromstring(picture.content)
        rows = reader.get("/api/curves.csv", runs=id)
        assert rows.headers["content-type"].startswith("text/csv")
    dashboard.close()
