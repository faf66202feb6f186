"""The settings of a run: those that were changed first, all of them folded below."""

from __future__ import annotations

from typing import Any

from hotloop.algos.registry import class_of
from hotloop.core.describe import SettingDoc, describe
from hotloop.core.errors import SettingsError
from hotloop.core.settings import flatten
from hotloop.doctor.views.html import Child, Html, element, prose, section, table
from hotloop.report.facts import RunFacts
from hotloop.report.numbers import shortened, shown

NOT_OF_LEARNING = ("run_dir", "trust")
"""Where a run lies and what it may import: no part of what it does."""
_MOST_ROWS = 400


def settings_section(facts: RunFacts) -> Html:
    flat = dict(list(flatten(facts.settings).items())[:_MOST_ROWS])
    if not flat:
        return section("Settings", element("p", "settings.toml cannot be read.", class_="missing"))
    known = _known(facts)
    rows = [_row(name, value, known.get(name)) for name, value in flat.items()]
    changed = [row for row, name in zip(rows, flat, strict=True) if name in changed_settings(flat, known)]
    if not known:
        return section("Settings", _table(rows), note="Of an algorithm that this hotloop does not know.")
    first = _table(changed) if changed else element("p", "All settings have their defaults.", class_="note")
    words = f"All {len(flat)} settings"
    fold = element("details", element("summary", words), _table(rows))
    return section("Settings", first, fold, note="Those that differ from the defaults of the algorithm.")


def changed_settings(flat: dict[str, Any], known: dict[str, SettingDoc]) -> list[str]:
    return [
        name
        for name, value in flat.items()
        if name not in NOT_OF_LEARNING and (name not in known or _plain(known[name].default) != value)
    ]


def _known(facts: RunFacts) -> dict[str, SettingDoc]:
    try:
        return {row.path: row for row in describe(class_of(facts.settings))}
    except SettingsError:
        return {}


def _plain(default: Any) -> Any:
    return list(default) if isinstance(default, tuple) else default


def _row(name: str, value: Any, known: SettingDoc | None) -> list[Child]:
    default = shown(_plain(known.default)) if known else "-"
    meaning = prose(known.meaning) if known else None
    return [element("code", shortened(name)), element("b", shown(value)), default, meaning]


def _table(rows: list[list[Child]]) -> Html:
    return table(["setting", "value", "default", "meaning"], rows, class_="settings")
