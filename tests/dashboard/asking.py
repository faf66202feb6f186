"""Requests to an app without a network: what a server would hand it, written down as a browser would send it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

HERE = "http://127.0.0.1:8127"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Browser:
    """Sends `headers` and `cookies` with everything, and keeps the cookies that it is given."""

    app: Any
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **more: Any) -> Answer:
        return self.ask("GET", path, **more)

    def post(self, path: str, data: Any = None, **more: Any) -> Answer:
        return self.ask("POST", path, data, **more)

    def ask(
        self, method: str, path: str, data: Any = None, *, headers: dict[str, str] | None = None, **query: str
    ) -> Answer:
        parts = urlsplit(path)
        sent = {"host": "127.0.0.1:8127", **self.headers, **(headers or {})}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "root_path": "",
            "query_string": (parts.query or urlencode(query)).encode(),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8127),
        }
        answer = asyncio.run(_asked(self.app, scope, b"" if data is None else json.dumps(data).encode()))
        if "set-cookie" in answer.headers:
            name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer


async def _asked(app: Any, scope: dict[str, Any], body: bytes) -> Answer:
    messages: list[dict[str, Any]] = []
    sent = False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:
            await asyncio.sleep(3_600)
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await app(scope, receive, send)
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in messages[0]["headers"]}
    return Answer(messages[0]["status"], headers, b"".join(part.get("body", b"") for part in messages[1:]))
