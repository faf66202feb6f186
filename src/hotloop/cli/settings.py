"""`hotloop settings dqn`, `hotloop settings dqn replay`, `hotloop settings dqn --toml`, `hotloop settings PRESET`."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line
from hotloop.presets import preset_names, preset_text, preset_tree

if TYPE_CHECKING:
    from hotloop.core.settings import SettingDoc

NOT_IN_A_FILE = ("algorithm", "run_dir", "trust")
"""Said by the file's first line, or of one run or one command only."""
WIDTH = 100


def run(words: list[str]) -> int:
    parser = VerbParser(
        "settings",
        "Show every setting of an algorithm with its default, unit and meaning, or those that contain a word;\n"
        "all of them as a TOML file to start from; or the text of a preset.\n"
        f"presets: {', '.join(preset_names())}",
        "hotloop settings dqn replay\n  hotloop settings dqn --toml > my.toml && hotloop train my.toml",
    )
    parser.add_argument("name", nargs="?", default="dqn", help="an algorithm (dqn, ppo) or a preset's name")
    parser.add_argument("search", nargs="*", help="show settings whose name or meaning contains all of these words")
    parser.add_argument("--toml", action="store_true", help="print a commented TOML file that `hotloop train` takes")
    arguments = parser.parse_args(words)
    from hotloop.algos.registry import ALGORITHMS

    if arguments.name in ALGORITHMS:
        _print_algorithm(arguments)
        return 0
    if arguments.search or arguments.toml:
        preset_text(arguments.name)  # a typo is told first
        raise SettingsError(
            f"`{arguments.name}` is a preset, whose text is a TOML file already",
            f"`hotloop settings {arguments.name}` prints it; `hotloop settings dqn WORD` searches",
        )
    if arguments.json:
        print_json(preset_tree(arguments.name))
    else:
        print_line(preset_text(arguments.name), end="")
    return 0


def _print_algorithm(arguments: Any) -> None:
    from hotloop.algos.registry import ALGORITHMS
    from hotloop.core.settings import describe

    words = [word.lower().replace("-", "_").lstrip("_") for word in arguments.search]
    rows = [row for row in describe(ALGORITHMS[arguments.name]) if all(_has(row, word) for word in words)]
    if not rows:
        raise _nothing_found(arguments.name, " ".join(arguments.search))
    if arguments.json:
        print_json([dataclasses.asdict(row) for row in rows])
    elif arguments.toml:
        print_line(as_toml(arguments.name, rows), end="")
    else:
        print_line("\n".join(_grouped(rows)))


def _has(row: SettingDoc, word: str) -> bool:
    return word in row.path.lower() or word in row.meaning.lower().replace("-", "_")


def _nothing_found(algorithm: str, searched: str) -> SettingsError:
    from hotloop.algos.registry import ALGORITHMS
    from hotloop.core.settings import unknown_key

    error = unknown_key(ALGORITHMS[algorithm], searched.replace("-", "_"), algorithm)
    return SettingsError(f"no setting of {algorithm} has `{searched}` in its name or meaning", error.hint)


def _by_table(rows: list[SettingDoc]) -> dict[str, list[SettingDoc]]:
    tables: dict[str, list[SettingDoc]] = {}
    for row in rows:
        tables.setdefault(row.path.rpartition(".")[0], []).append(row)
    return dict(sorted(tables.items(), key=lambda item: item[0] != ""))  # those without a table first, as TOML wants


def _grouped(rows: list[SettingDoc]) -> list[str]:
    lines: list[str] = []
    for table, own in _by_table(rows).items():
        lines += ["", f"[{table}]" if table else "[the run]"]
        for row in own:
            lines.append(f"  --{row.path.replace('_', '-')}  [{_value(row.default)}]")
            lines += textwrap.wrap(row.meaning, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return lines[1:]


def as_toml(algorithm: str, rows: list[SettingDoc]) -> str:
    """Every setting at its default, its meaning above it: a file to start from."""
    lines = [f"# Every setting of {algorithm} at its default: change what you like, leave out the rest.", ""]
    lines += [f'algorithm = "{algorithm}"']
    for table, own in _by_table([row for row in rows if row.path not in NOT_IN_A_FILE]).items():
        lines += ["", f"[{table}]"] if table else []
        for row in own:
            lines += ["", *textwrap.wrap(row.meaning, WIDTH, initial_indent="# ", subsequent_indent="# ")]
            lines.append(f"{row.path.rpartition('.')[2]} = {_value(row.default)}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """As TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_value(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    return json.dumps(value)
