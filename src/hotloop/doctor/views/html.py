"""HTML by construction: every string is escaped on its way into an element, so that no source line becomes markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"meta", "br"})


class Html(str):
    """Text that is markup already. A plain string, an f-string over this included, is not."""

    __slots__ = ()


Child = Html | str | None


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Html:
    """`element("p", "a < b", class_="note")`; attributes that are None or False are left out."""
    words = [tag, *(_attribute(name, value) for name, value in attributes.items() if value not in (None, False))]
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
    """The style of a phase's colour; a name of somebody else's making must not reach into other styles."""
    known = {"act", "env", "store", "sample", "store-and-sample", "update", "log", "evaluate", "checkpoint", "start-up"}
    return f"p-{name}" if name in known else "p-other"
