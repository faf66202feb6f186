"""Who may ask: every request passes here first, and nothing behind it is reached without the token.

The first page is opened by a link that holds the token; from then on a cookie that no script can read stands for it.
A page of another site can make a browser send requests here: such a request carries another `Origin`, or, where a name
was made to point to this machine, another `Host`. Both are refused whatever cookie comes with them.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""An SVG file has its own styles; opened by itself it may do nothing."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
ADMIT = "admit"
"""In a request's state: the function that keeps its connection open. Only a request that is let in calls it."""
_AWAY = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">'
    b'<link rel="icon" href="/static/icon.svg"><title>hotloop</title><a href="/">hotloop dashboard</a>'
)


@dataclass(frozen=True)
class Keys:
    """`token` stands in the link, `session` in the cookie called `cookie`."""

    cookie: str = "hotloop"
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))


class RequestGuard:
    """Wraps the whole app, pages that do not exist included."""

    def __init__(self, app: App, keys: Keys, hosts: Iterable[str] = LOOPBACK) -> None:
        self._app, self._keys = app, keys
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008})
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = _headers(scope)
        refused = self._refusal(scope, headers)
        if refused:
            return await _answer(send, 403, f"{refused}\n".encode(), "text/plain; charset=utf-8")
        if self._brings_token(scope):
            _admit(scope)
            # not a redirect: a click in another site's page would then not bring the cookie with it
            cookie = f"{self._keys.cookie}={self._keys.session}; HttpOnly; SameSite=Strict; Path=/"
            return await _answer(send, 200, _AWAY, "text/html; charset=utf-8", cookie)
        if not self._has_session(headers):
            words = b"hotloop dashboard: open the link that `hotloop dashboard` printed when it started.\n"
            return await _answer(send, 403, words, "text/plain; charset=utf-8")
        _admit(scope)
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, list[str]]) -> str:
        """Why a request is refused whoever sent it; empty where it is not."""
        hosts = headers.get("host", [])
        if len(hosts) != 1 or _hostname(f"//{hosts[0]}") not in self._hosts:
            return "the request is for another host"
        origins = headers.get("origin", [])
        if any(origin != f"{scope.get('scheme', 'http')}://{hosts[0]}" for origin in origins):
            return "the request comes from another site"
        if scope["method"] not in ("GET", "HEAD") and not origins:
            return "the request does not say from where it comes"
        brings_token = self._brings_token(scope)
        elsewhere = any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", []))
        if elsewhere and not brings_token:
            return "the request comes from another site"
        if _tokens(scope) and not brings_token:
            return "the token is wrong: open the link that `hotloop dashboard` printed"
        return ""

    def _brings_token(self, scope: Scope) -> bool:
        given = _tokens(scope)
        right = len(given) == 1 and hmac.compare_digest(given[0].encode(), self._keys.token.encode())
        return right and scope["method"] == "GET" and scope["path"] == "/"

    def _has_session(self, headers: dict[str, list[str]]) -> bool:
        found = [value for text in headers.get("cookie", []) for value in _cookies(text, self._keys.cookie)]
        return any(hmac.compare_digest(value.encode(), self._keys.session.encode()) for value in found)


def _cookies(text: str, wanted: str) -> list[str]:
    """The values of one name in a `Cookie` header. All programs on localhost share one jar, and a parser of whole
    headers gives up at the first form that it does not know, so nothing that stands beside ours is looked at."""
    pairs = [part.strip().partition("=") for part in text.split(";")]
    return [value for name, _, value in pairs if name == wanted]


def _admit(scope: Scope) -> None:
    scope.get("state", {}).get(ADMIT, lambda: None)()


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _hostname(address: str) -> str | None:
    """Without its port: behind `ssh -L` that is another one."""
    try:
        parts = urlsplit(address)
        return parts.hostname if parts.username is None and parts.path == "" else None
    except ValueError:
        return None


def _tokens(scope: Scope) -> list[str]:
    try:
        return parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True).get("token", [])
    except ValueError:
        return [""]


async def _answer(send: Send, status: int, body: bytes, kind: str, cookie: str = "") -> None:
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(b"set-cookie", cookie.encode())] if cookie else []
    guarded = _with_headers(send)
    await guarded({"type": "http.response.start", "status": status, "headers": headers})
    await guarded({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            there = {name.lower() for name, _ in headers}
            every = {**HEADERS, "content-security-policy": POLICY}
            more = [(name.encode(), value.encode()) for name, value in every.items() if name.encode() not in there]
            message = {**message, "headers": headers + more}
        await send(message)

    return sent
