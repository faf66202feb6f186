"""`hotloop settings dqn`, `hotloop settings dqn replay`, `hotloop settings dqn --toml`, `hotloop settings PRESET`,
`hotloop settings dqn --preset`."""

from __future__ import annotations

import dataclasses
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line
from hotloop.presets.named import preset_names, preset_text, preset_tree


def run(words: list[str]) -> int:
    parser = VerbParser(
        "settings",
        "Show every setting of an algorithm with its default, unit and meaning, or those that contain a word;\n"
        "all of them as a TOML file to start from; or the text of a preset.\n"
        f"presets: {', '.join(preset_names())}",
        "hotloop settings dqn replay\n  hotloop settings dqn --toml > my.toml && hotloop train my.toml",
    )
    parser.add_argument("name", nargs="?", default="dqn", help="an algorithm (dqn, ppo, sac) or a preset's name")
    parser.add_argument("search", nargs="*", help="show settings whose name or meaning contains all of these words")
    parser.add_argument("--toml", action="store_true", help="print a commented TOML file that `hotloop train` takes")
    parser.add_argument("--preset", action="store_true", help="the text of the preset: `dqn` and `ppo` are both")
    arguments = parser.parse_args(words)
    from hotloop.presets.registry import ALGORITHMS

    if arguments.name in ALGORITHMS and not arguments.preset:
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
    from hotloop.core.describe import as_text, as_toml, find_settings
    from hotloop.core.settings import unknown_key
    from hotloop.presets.registry import ALGORITHMS

    cls, searched = ALGORITHMS[arguments.name], " ".join(arguments.search)
    rows = find_settings(cls, arguments.search)
    if not rows:
        hint = unknown_key(cls, searched.replace("-", "_"), arguments.name).hint
        raise SettingsError(f"no setting of {arguments.name} has `{searched}` in its name or meaning", hint)
    if arguments.json:
        print_json({"settings": [dataclasses.asdict(row) for row in rows]})
    elif arguments.toml:
        print_line(as_toml(arguments.name, rows), end="")
    else:
        print_line(as_text(rows))
