"""What the program knows of its own installation."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.core import program


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, "pip install 'hotloop[tune]'"),  # from an index
        (
            {"url": "file:///home/a%20b/hotloop", "dir_info": {"editable": True}},
            "pip install -e '/home/a b/hotloop[tune]'",
        ),
        ({"url": "file:///home/hotloop", "dir_info": {}}, "pip install '/home/hotloop[tune]'"),
        (
            {"url": "file:///tmp/hotloop-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install '/tmp/hotloop-0.1.0-py3-none-any.whl[tune]'",
        ),
        (
            {"url": "https://example.org/hotloop.git", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "pip install 'hotloop[tune] @ git+https://example.org/hotloop.git'",
        ),
    ],
)
def test_an_extra_is_installed_from_where_hotloop_came_from(
    source: dict[str, Any] | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if source is None else json.dumps(source)
    monkeypatch.setattr(program, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))
    assert program.install_command("tune") == expected
