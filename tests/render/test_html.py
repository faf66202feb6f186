"""The shell of every page: one style and one script out of files, and nothing else that could be fetched or run."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from importlib import resources

import pytest

from hotloop import render
from hotloop.render.html import data_uri, document, element, script, style


def test_a_page_holds_the_style_and_the_one_script_that_its_policy_allows() -> None:
    page = document("a < b", element("p", "<script>alert(1)</script>"), kind="report")
    assert page.startswith('<!doctype html>\n<html lang="en"><head><meta charset="utf-8">')
    assert "<title>a &lt; b</title>" in page
    assert page.count("<script>") == page.count("<style>") == 1
    assert "&lt;script&gt;alert(1)" in page
    (inline,) = re.findall(r"<script>(.*)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
    assert f"script-src &#x27;sha256-{digest}&#x27;;" in page
    assert '<body class="report"><main>' in page
    assert page.endswith("</html>\n")


def test_a_page_without_a_script_allows_none() -> None:
    page = document("words", "only", kind="comparison", scripted=False)
    assert "<script" not in page
    assert "script-src" not in page
    assert "default-src &#x27;none&#x27;" in page


def test_halves_of_surrogate_pairs_can_be_written() -> None:
    assert "?" in document("\ud800", kind="report").encode().decode()


@pytest.mark.parametrize("name", ["page.css", "page.js"])
def test_style_and_script_are_files_of_the_package_and_fetch_nothing(name: str) -> None:
    text = resources.files(render).joinpath(name).read_text(encoding="utf-8")
    assert text in (style(), script())
    assert "</" not in text
    assert not re.findall(r"https?:|//\w|url\(|@import|fetch\(|XMLHttp|import\(|innerHTML", text)


def test_braces_of_the_style_are_balanced() -> None:
    depth = 0
    for brace in re.findall(r"[{}]", style()):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0


def test_zero_is_an_attribute_and_false_is_none() -> None:
    assert element("input", min=0, value=0, disabled=False, hidden=True) == '<input min="0" value="0" hidden>'
    assert (
        element("img", src=data_uri("image/png", b"abc"), alt="x") == '<img src="data:image/png;base64,YWJj" alt="x">'
    )


def test_pages_need_no_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from hotloop.render.chart import Curve, Frame, as_pixels, as_svg, lay_out

    monkeypatch.setitem(sys.modules, "PIL", None)  # as if it were not installed
    chart = lay_out([Curve("one", np.arange(3.0), np.arange(3.0), None, None)], Frame("Title", "one seed", "env steps"))
    assert "<svg" in as_svg(chart)
    assert document("words", kind="report")
    with pytest.raises(ImportError):
        as_pixels(chart)
