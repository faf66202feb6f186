"""What is compared: presets and TOML files with overrides, or runs that are there already, under short labels; and
the words of `hotloop compare` taken apart: its own options, and each arm with the overrides that follow it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hotloop.comparison.finished import FoundRuns, find_runs, folder_name, holds_runs
from hotloop.comparison.scores import Scores, find_files, is_file_arm, parse_scores
from hotloop.comparison.scripts import SEED, Script, find_script
from hotloop.core.errors import SettingsError
from hotloop.core.extras import require_training
from hotloop.core.overrides import flag_of
from hotloop.core.values import nearest
from hotloop.presets.named import preset_names
from hotloop.presets.registry import tree_from_argv

HINT = (
    "an arm is a preset, a TOML file, a folder of runs, a script, or scores (`FILE:COLUMN` with {seed} in the path): "
    '"[LABEL=]preset --setting value" or "[LABEL=]script.py --seed {seed}", its inner quotes closed'
)
OURS = {"--seed": "`--seeds N` trains seeds 0 to N - 1", "--run-dir": "`--out FOLDER` holds the runs"}
_LONGEST_LABEL = 44


@dataclass(frozen=True)
class Arm:
    """`runs` are those that were named as finished ones; an arm that has any trains none."""

    label: str
    source: str
    words: tuple[str, ...]
    settings: Mapping[str, Any]
    runs: tuple[Path, ...] = ()
    named: bool = False  # its label was given
    script: Script | None = None  # a command, instead of settings of ours
    scores: Scores | None = None  # where its scores are written, instead of what the recorder sees
    seeds: tuple[int, ...] = ()  # of `runs` that are files

    @property
    def folder(self) -> str:
        """The label as a file name."""
        return folder_name(self.label)


def parse_arms(
    texts: Sequence[str], common: Sequence[str], scores: str | None = None, trust: bool = False
) -> list[Arm]:
    """`[LABEL=]PRESET|FILE.toml [--any.setting VALUE ...]`, `[LABEL=]FOLDER ...`, a command, or `[LABEL=]FILE:COLUMN`
    with `{seed}` in the path; `common` overrides come first, so that an arm's own win. `scores` is where commands
    write their scores, `{arm}` in it for the label; `trust` allows code that a TOML file names."""
    if not texts:
        raise SettingsError("no ARM is given", "`hotloop compare --help` explains")
    arms = [arm for text in texts for arm in _parse(text, common, trust)]
    if common and all(arm.runs for arm in arms):
        raise SettingsError(
            "all arms are finished runs, so that no setting can be changed", "leave out what follows `--`"
        )
    _reject_duplicate_arms(arms)
    return _with_scores(_unique_labels(arms), scores)


def _with_scores(arms: list[Arm], text: str | None) -> list[Arm]:
    if text is None:
        return arms
    scores, commands = parse_scores(text), [arm for arm in arms if arm.script is not None]
    if not commands:
        raise SettingsError("`--scores` says where commands write their scores, and no arm is a command")
    if len(commands) > 1 and len({scores.of_arm(arm.label).path for arm in commands}) == 1:
        raise SettingsError(
            f"all commands would write their scores to {scores.path}",
            "put `{arm}` into the path, which stands for the label: `logs/{arm}-{seed}.csv:return`",
        )
    return [replace(arm, scores=scores.of_arm(arm.label)) if arm.script is not None else arm for arm in arms]


def _parse(text: str, common: Sequence[str], trust: bool) -> list[Arm]:
    label, text = _split_label(text)
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise SettingsError(f"the arm `{text}` cannot be read: {error}", HINT) from None
    if not parts:
        raise SettingsError(f"an arm is empty{f' after its label `{label}`' if label else ''}", HINT)
    if len(parts) == 1 and is_file_arm(parts[0]):
        scores, files = find_files(parts[0])
        made = label or file_label(scores.path)
        return [Arm(made, text, (), scores.settings(), tuple(files.values()), bool(label), None, scores, tuple(files))]
    if Path(parts[0]).is_dir() and parts[0] not in preset_names():
        return [_of_runs(label, found, text) for found in find_runs(parts)]
    script = find_script(parts)
    if script is not None:
        if common:
            raise SettingsError(f"what follows `--` are settings of ours, which {script.path} does not have")
        named = label or short_label(script.path.stem, script.arguments)
        return [Arm(named, str(script.path), script.arguments, script.settings(), named=bool(label), script=script)]
    source, *own = parts
    words = (*common, *own, *(("--trust",) if trust else ()))
    for word in words:
        name = word.partition("=")[0].replace("_", "-")
        if name in OURS:
            raise SettingsError(f"the arm `{text}` sets `{name}`, which compare does itself", OURS[name])
    settings = tree_from_argv(source, words)
    require_training(f"training `{source}`")
    return [Arm(label or short_label(source, own), source, words, settings, named=bool(label))]


def file_label(path: str) -> str:
    """What the path says besides the seed: of the part that holds it (`logs/dqn-{seed}/monitor.csv` is `dqn`), or of a
    folder above."""
    parts = Path(path).parts
    place = max(number for number, part in enumerate(parts) if SEED in part)
    names = [part.partition(".")[0].replace(SEED, "").strip("-_.*") for part in reversed(parts[: place + 1])]
    return next(filter(None, names), "scores")


def _of_runs(label: str, found: FoundRuns, text: str) -> Arm:
    return Arm(label or found.name, text, (), found.settings, found.paths, named=bool(label))


def _split_label(text: str) -> tuple[str, str]:
    """A label ends at the first `=`, unless that belongs to a setting or to the name of a file or folder."""
    label, equals, rest = text.partition("=")
    in_path = "/" in label and is_file_arm(text)
    if not equals or " --" in label or in_path or Path(text.split(" --")[0].strip()).exists():
        return "", text
    return label.strip(), rest


def short_label(source: str, own: Sequence[str]) -> str:
    """`snake-dqn, updates-per-env-step 0.03`: settings by the last part of their names, as many as fit."""
    name = Path(source).name.removesuffix(".toml")
    groups: list[str] = []
    for word in own:
        if word.startswith("--"):
            flag, _, value = word[2:].partition("=")
            groups.append(f"{flag.rpartition('.')[2]} {value}".strip())
        elif groups:
            groups[-1] += f" {word}"
    label = ", ".join([name, *groups])
    while len(label) > _LONGEST_LABEL and len(groups) > 1:
        groups.pop()
        label = ", ".join([name, *groups, "..."])
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 3] + "..."


def _reject_duplicate_arms(arms: Sequence[Arm]) -> None:
    """Trained, they would be equal bit by bit, which says nothing about learning."""
    for number, arm in enumerate(arms):
        for other in arms[:number]:
            if arm.runs and arm.runs == other.runs:
                raise SettingsError(f"`{arm.source}` is named twice", "compare it with other runs")
            if not arm.runs and not other.runs and arm.settings == other.settings and not (arm.named and other.named):
                raise SettingsError(
                    f"the arms `{other.label}` and `{arm.label}` are the same",
                    f'change a setting in one of them, or name them apart: "one={arm.source} ..." "other=..."',
                )


def _unique_labels(arms: Sequence[Arm]) -> list[Arm]:
    """Labels that were made are numbered where they meet another; those that were given must differ."""
    seen = {arm.folder.lower() for arm in arms if arm.named}  # some file systems take `A` and `a` for the same
    if len(seen) < sum(arm.named for arm in arms):
        labels = [arm.label for arm in arms if arm.named]
        twice = next(label for label in labels if sum(label.lower() == other.lower() for other in labels) > 1)
        raise SettingsError(f"two arms are called `{twice}`", 'name them apart: "one=..." "other=..."')
    apart = []
    for arm in arms:
        label, number = arm.label, 1
        while not arm.named and arm.folder.lower() in seen:
            number += 1
            arm = replace(arm, label=f"{label} ({number})")
        if not arm.folder or len(arm.folder) > 120:
            raise SettingsError(f"`{arm.label}` makes no good folder name", 'name the arm: "LABEL=preset ..."')
        seen.add(arm.folder.lower())
        apart.append(arm)
    return apart


def split_argv(
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
    return is_file_arm(text) or text in presets or text.endswith((".toml", ".py")) or holds_runs(text)


@contextmanager
def explained(words: Sequence[str], options: Collection[str], presets: Collection[str]) -> Iterator[None]:
    """Inside, a mistaken setting that looks like one of our options, or a value like a preset, gets a hint."""
    try:
        yield
    except SettingsError as error:
        if error.kind == "unknown":
            near = nearest(flag_of(error.key), list(options))
            raise SettingsError(error.message, _also(error.hint, near and f"the option `{near}`")) from None
        if error.kind == "count":
            close = [near for word in words if not word.startswith("-") and (near := nearest(word, list(presets)))]
            raise SettingsError(
                error.message, _also(error.hint, f"the preset `{close[-1]}`" if close else None)
            ) from None
        raise


def _also(hint: str, other: str | None) -> str:
    return "; or ".join(part for part in (hint, f"did you mean {other}?" if other else "") if part)
