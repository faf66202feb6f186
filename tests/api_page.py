"""docs/api.md, made from the docstrings of all public names: `python -m tests.api_page` writes it anew."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import hotloop
from hotloop.loop.agents import Agent

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
PARTS = "Parts for your own loop"
GROUPS = {
    "Train": (
        "preset",
        "train",
        "iterate",
        "resume",
        "load",
        "evaluate",
        "history",
        "DQNSettings",
        "PPOSettings",
        "SACSettings",
    ),
    PARTS: (
        *("Replay", "Batch", "QLearner", "SACLearner", "Rollout", "Note", "PolicyLearner"),
        *("gae", "vector", "final_obs", "final_mask"),
    ),
    "Instruments": (
        "diagnose",
        "prove",
        "assert_same",
        "pair",
        "cases",
        "Case",
        "Programs",
        "TwoSizes",
        "compare",
        "tune",
    ),
    "Look": ("report", "watch", "export_agent"),
    "A workload of your own": ("Workload",),
    "Errors": ("HotloopError",),
}
HEAD = """# API

[All pages](README.md)

Made from the docstrings; `help(hotloop.train)` shows the same. Pages with more: [your own loop](own-loop.md),
[parts](parts.md), [learners](learners.md), [recipes](recipes.md).
"""


def page() -> str:
    left = set(hotloop.__all__) - {name for names in GROUPS.values() for name in names}
    assert not left, f"{sorted(left)} have no place on the page"
    parts = [HEAD]
    for group, names in GROUPS.items():
        parts.append(f"\n## {group}\n")
        parts += [entry(name, getattr(hotloop, name)) for name in names if name in hotloop.__all__]
    parts.append("\n## Agents\n\nWhat `hotloop.load` returns and a row of `hotloop.iterate` shows.\n")
    parts += [f"\n- **`agent.{member_head(key, member)}`** {one_line(member)}" for key, member in public_members(Agent)]
    return "".join(parts) + "\n"


def entry(name: str, thing: Any) -> str:
    text = f"\n### `hotloop.{name}`\n\n```text\n{signature(name, thing)}\n```\n\n{body(thing)}\n"
    if inspect.isclass(thing) and name in GROUPS[PARTS]:
        for key, member in public_members(thing):
            text += f"\n- **`{member_head(key, member)}`** {one_line(member)}"
        text += "\n"
    return text


def public_members(kind: type) -> list[tuple[str, Any]]:
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        if base.__module__.startswith("hotloop."):
            found |= {key: value for key, value in vars(base).items() if not key.startswith("_")}
    shown = [(key, value) for key, value in found.items() if callable(value) or isinstance(value, property)]
    return [(key, value) for key, value in shown if inspect.getdoc(value)]


def member_head(key: str, member: Any) -> str:
    if isinstance(member, property):
        return key
    parameters = list(inspect.signature(member).parameters.values())[1:]
    return f"{key}({', '.join(str(one.replace(annotation=one.empty)) for one in parameters)})"


def one_line(member: Any) -> str:
    return re.sub(r"\s+", " ", (inspect.getdoc(member) or "").partition("\n\n")[0])


def signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing) and name not in GROUPS[PARTS]:
        return f"class {name}"
    parameters = [
        one.replace(annotation=one.empty) for one in inspect.signature(thing).parameters.values() if one.name != "self"
    ]
    return re.sub(r"<function [^>]*>( at \w+>)?", "...", f"{name}({', '.join(map(str, parameters))})")


def body(thing: Any) -> str:
    """Prose as it is; paragraphs that are indented or begin with `>>>` as code."""
    paragraphs = (inspect.getdoc(thing) or "").split("\n\n")
    return "\n\n".join(as_code(one) if one.startswith(("    ", ">>>")) else one for one in paragraphs)


def as_code(paragraph: str) -> str:
    return f"```python\n{textwrap.dedent(paragraph)}\n```"


if __name__ == "__main__":
    PAGE.write_text(page())
