"""The words of `hotloop compare` taken apart: its own options, and each arm with the overrides that follow it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from hotloop.compare.arms import Arm
from hotloop.compare.finished import holds_runs
from hotloop.core.errors import SettingsError
from hotloop.core.suggest import nearest


def split_words(
    words: Sequence[str], options: Collection[str], switches: Collection[str], presets: Collection[str]
) -> tuple[list[str], list[str]]:
    """Words for the verb's own parser, and one text per arm.

    A word starts an arm where it names a preset, a TOML file, an existing folder, or one of these after `LABEL=`;
    where it stands in quotes with a flag inside; and where no flag is waiting for it. Every other word belongs to the
    flag before it, and a flag that is none of ours to the arm before it. A value that reads like an arm is given as
    `--setting=value`.
    """
    own: list[str] = []
    arms: list[list[str]] = []
    waiting = False  # an option of ours lacks its value
    for word in words:
        name = word.partition("=")[0]
        if waiting or name in options or word in switches:
            own.append(word)
            waiting = not waiting and word in options
        elif word.startswith("--"):
            _last(arms, word, [*options, *switches]).append(shlex.quote(word))
        elif starts_arm(word, presets) or not arms or not any(part.startswith("--") for part in arms[-1][1:]):
            arms.append([shlex.quote(word) if Path(word).exists() else word])
        else:
            arms[-1].append(shlex.quote(word))
    return own, [" ".join(parts) for parts in arms]


def _last(arms: list[list[str]], word: str, ours: Collection[str]) -> list[str]:
    if arms:
        return arms[-1]
    near = nearest(word, list(ours))
    raise SettingsError(
        f"`{word}` is no option of `hotloop compare`",
        (f"did you mean `{near}`? " if near else "") + "settings of an arm follow it; those of all arms follow `--`",
    )


def starts_arm(word: str, presets: Collection[str]) -> bool:
    if " --" in word:
        return True
    first = word.split(" ")[0]
    return any(_is_source(text, presets) for text in (word, first, first.partition("=")[2]))


def _is_source(text: str, presets: Collection[str]) -> bool:
    return text in presets or text.endswith(".toml") or holds_runs(text)


def explained(
    resolve: Callable[[], list[Arm]], words: Sequence[str], options: Collection[str], presets: Collection[str]
) -> list[Arm]:
    """`resolve()`, with a hint where a mistaken setting looks like one of our options, or a value like a preset."""
    try:
        return resolve()
    except SettingsError as error:
        if error.message.startswith("unknown setting"):
            near = nearest("--" + error.message.split("`")[1].replace("_", "-"), list(options))
            raise SettingsError(error.message, _also(error.hint, near and f"the option `{near}`")) from None
        if " values, expected" in error.message:
            close = [near for word in words if not word.startswith("-") and (near := nearest(word, list(presets)))]
            raise SettingsError(
                error.message, _also(error.hint, f"the preset `{close[-1]}`" if close else None)
            ) from None
        raise


def _also(hint: str, other: str | None) -> str:
    return "; or ".join(part for part in (hint, f"did you mean {other}?" if other else "") if part)
