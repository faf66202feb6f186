"""HTML by construction, and the one shell of every page, with `page.css` and `page.js` in it.

Every string is escaped on its way into an element, so that no source line becomes markup.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable
from html import escape
from importlib import resources

_VOID = frozenset({"meta", "br", "img", "input"})


_PHASES = frozenset(
    ("act", "env", "store", "sample", "store-and-sample", "advantage", "update", "log", "evaluate", "checkpoint")
    + ("compile", "start-up")
)


class Html(str):
    """Text that is markup already. A plain string, an f-string over this included, is not."""

    __slots__ = ()


Child = Html | str | None


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Html:
    """`element("p", "a < b", class_="note")`; attributes that are None or False are left out."""
    given = {name: value for name, value in attributes.items() if value is not None and value is not False}
    words = [tag, *(_attribute(name, value) for name, value in given.items())]
    opening = f"<{' '.join(words)}>"
    return Html(opening if tag in _VOID else f"{opening}{join(children)}</{tag}>")


def join(parts: Iterable[Child]) -> Html:
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts if part is not None))


def _attribute(name: str, value: str | float | bool | None) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return name
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f'{name}="{escape(shown)}"'


def prose(words: str) -> Html:
    """A sentence in which `this` is code."""
    parts = words.split("`")
    if len(parts) % 2 == 0:
        return join([words])
    return join(element("code", part) if place % 2 else part for place, part in enumerate(parts))


def section(title: str, *body: Child, note: str = "", **attributes: str) -> Html:
    """A part of the page; nothing at all where it would be empty."""
    if not any(body):
        return Html("")
    heading = element("h2", title)
    about = element("p", note, class_="note") if note else None
    return element("section", heading, about, *body, **attributes)


def table(headings: Iterable[str], rows: Iterable[Iterable[Child]], **attributes: str) -> Html:
    head = element("tr", *(element("th", heading, scope="col") for heading in headings))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element("table", element("thead", head), element("tbody", *body), **attributes)


def phase_class(name: str) -> str:
    """The style of a phase's color; a name of somebody else's making must not reach into other styles."""
    return f"p-{name}" if name in _PHASES else "p-other"


def data_uri(kind: str, data: bytes) -> str:
    """A file as an address, for an `img` of a page that fetches nothing."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def document(title: str, *body: Child, kind: str, scripted: bool = True) -> str:
    """A whole page: complete in itself, nothing is fetched, and nothing can run but our one script.

    `kind` is the class of its body, below which `page.css` has the rules that only such pages need.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(scripted)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(style())),
    )
    ours = element("script", Html(script())) if scripted else None
    whole = element("html", head, element("body", element("main", *body), ours, class_=kind), lang="en")
    # halves of surrogate pairs, which JSON may hold and no file can
    return f"<!doctype html>\n{whole}\n".encode("utf-8", "replace").decode()


def _policy(scripted: bool) -> str:
    """The browser itself refuses every request, and every script but ours."""
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; " if scripted else ""
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; {allowed}base-uri 'none'; form-action 'none'"


def style() -> str:
    return _text_of("page.css")


def script() -> str:
    return _text_of("page.js")


@functools.cache
def _text_of(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
