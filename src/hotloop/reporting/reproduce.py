"""The commands that continue a run, look at it, and make it again.

The settings of a run: those that were changed first, all of them folded below.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import tomli_w

from hotloop.core.describe import SettingDoc, describe
from hotloop.core.errors import SettingsError
from hotloop.core.overrides import as_argv, parse_overrides
from hotloop.core.settings import as_tree, build, flatten, merge
from hotloop.presets.named import preset_names, preset_tree
from hotloop.presets.registry import class_of, label_of, settings_of
from hotloop.render.html import Child, Html, element, prose, section, table
from hotloop.render.numbers import shortened, shown
from hotloop.reporting.facts import RunFacts

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


_LANES = ("eager", "compiled", "native")


@dataclass(frozen=True)
class Reproduction:
    """How a run is made anew: a command, and the file it needs where a command alone cannot say it."""

    command: str = ""
    file: str = ""
    problem: str = ""


def reproduce(facts: RunFacts) -> Reproduction:
    """A preset with overrides where that gives exactly these settings, otherwise a settings file."""
    try:
        wanted = _learning_tree(as_tree(settings_of(facts.run, tree=facts.settings)))
    except SettingsError as error:
        return Reproduction(problem=f"The settings cannot be used by this hotloop: {error.message}.")
    if wanted["learner"]["lane"] == "auto" and facts.lane.get("lane") in _LANES:
        wanted["learner"]["lane"] = facts.lane["lane"]  # another machine may choose another
    if found := _shortest_command(facts.label, wanted):
        return Reproduction(shlex.join(["hotloop", "train", *found]))
    defaults = _learning_tree(as_tree(class_of(wanted)()))
    return Reproduction(
        "hotloop train settings.toml", tomli_w.dumps({"algorithm": wanted["algorithm"], **_over(defaults, wanted)})
    )


def _shortest_command(label: str, wanted: dict[str, Any]) -> list[str]:
    """The run's preset with what makes it `wanted`; of a run called by its env, the preset that needs the fewest words.
    Empty where the run came of something else, or the command line cannot say it."""
    names = [label] if label in preset_names() else []
    if label == label_of(build(class_of(wanted), wanted)):
        names = names or preset_names()
    commands = [[name, *words] for name in names if (words := _words(name, wanted)) is not None]
    return min(commands, key=len, default=[])


def _words(preset: str, wanted: dict[str, Any]) -> list[str] | None:
    """Overrides that turn the preset into `wanted`; None where the command line cannot say it."""
    tree = preset_tree(preset)
    cls = class_of(tree)
    if cls is not class_of(wanted):
        return None
    start = flatten(_learning_tree(as_tree(build(cls, tree))))
    words = as_argv({name: value for name, value in flatten(wanted).items() if start.get(name) != value})
    try:
        made = build(cls, merge(tree, parse_overrides(words, cls)))
    except SettingsError:
        return None
    return words if _learning_tree(as_tree(made)) == wanted else None


def _learning_tree(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name not in NOT_OF_LEARNING}


def _over(defaults: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What differs; tables whole, since half a table takes the other half from its own kind's defaults."""
    return {name: value for name, value in wanted.items() if value != defaults.get(name)}


def again_section(facts: RunFacts, topology: bool) -> Html:
    again = reproduce(facts)
    blocks = [element("div", element("p", words), _code(command)) for words, command in _uses(facts, topology)]
    if again.problem:
        blocks.append(element("p", again.problem, class_="missing"))
    else:
        file = [element("p", "with these lines in settings.toml:"), _code(again.file)] if again.file else []
        blocks.append(element("div", element("p", _promise(facts)), _code(again.command), *file))
    return section("Continue it, look at it, do it again", *blocks, class_="again")


def _uses(facts: RunFacts, topology: bool) -> Iterator[tuple[str, str]]:
    run = shlex.quote(str(facts.run.path))
    yield _resume_argv(facts), f"hotloop resume {run}"
    if facts.checkpoints:
        drawn = f"\nhotloop topology draw {run} --out network.svg" if topology else ""
        yield "Its best agent, on fresh episodes and to look at:", f"hotloop evaluate {run}\nhotloop watch {run}{drawn}"


def _resume_argv(facts: RunFacts) -> str:
    if facts.status == "finished":
        return "The run is finished; resuming it only prints its result again:"
    if facts.status == "running":
        return "A process is training it now. Should that stop, this goes on from the newest checkpoint:"
    if not facts.checkpoints:
        return "It has no checkpoint that can be used; this starts it from the beginning:"
    name = facts.checkpoints[-1].partition("-")[0]
    return f"It goes on from {f'{int(name):,} env steps' if name.isdecimal() else f'checkpoint {name}'}:"


def _promise(facts: RunFacts) -> str:
    digest = facts.result.get("digest")
    version = facts.about.get("hotloop", "an unknown version")
    made = f"The same run anew; it was made with hotloop {shown(version)}"
    if not isinstance(digest, str):
        return f"{made}:"
    return f"{made}, and with the same versions on such a machine its digest is {digest[:16]}... again:"


def _code(text: str) -> Html:
    return element("pre", element("code", text.rstrip("\n")))
