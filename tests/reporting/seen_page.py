"""What a browser would find in a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = ("meta", "img", "input")


class Seen(HTMLParser):
    """Elements, attributes and words; every element must be closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []  # tag, name, value
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.words)

    def markup(self) -> str:
        """All but the words, and the attributes that are only read out: what could do something."""
        spoken = ("aria-label", "title", "alt", "data-words")
        live = (f"{tag} {name} {value}" for tag, name, value in self.attributes if name not in spoken)
        return "\n".join([*self.tags, *live])


def require_harmless(html: str) -> Seen:
    """Nothing is fetched, and nothing runs but our one script."""
    seen = Seen(html)
    assert seen.open == []
    assert seen.tags.count("script") == 1
    assert not {"link", "iframe", "object", "embed", "base", "form", "a", "audio", "video"} & set(seen.tags)
    assert html.count("<style>") == 1 == html.count("<script>")
    for tag, name, value in seen.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("href", "srcset", "action", "data", "poster", "srcdoc", "formaction"), (tag, name)
        if name == "src":
            assert tag == "img"
            assert re.match(r"data:image/(png|svg\+xml);base64,[A-Za-z0-9+/=]+$", value)
        if name == "style":
            assert re.fullmatch(r"(((left|top|width):|transform:translateX\()[0-9.e+-]+%\)?;?)+", value), value
        if name == "content" and value.startswith("default-src"):
            assert value.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-")
    style_and_script = html[html.index("<style>") : html.index("</style>")] + html[html.rindex("<script>") :]
    assert not re.findall(r"https?:|//\w|url\(|@import|fetch\(|XMLHttp|import\(", style_and_script)
    assert not re.findall(r"https?://", seen.markup())
    return seen
