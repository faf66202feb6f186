"""What is compared: a preset or a TOML file with overrides, under a label."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import SettingsError

Resolve = Callable[[str, Sequence[str]], Mapping[str, Any]]
"""From a preset's name and override words to the whole tree of settings; raises SettingsError."""

HINT = 'an arm is a preset, a TOML file, or "[LABEL=]preset --setting value", its inner quotes closed'
OURS = {"--seed": "`--seeds N` trains seeds 0 to N - 1", "--run-dir": "`--out FOLDER` holds the runs"}


@dataclass(frozen=True)
class Arm:
    label: str
    source: str
    words: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def folder(self) -> str:
        """The label as a file name."""
        return re.sub(r"[^A-Za-z0-9_.]+", "-", self.label).strip("-.")


def parse_arm(text: str, common: Sequence[str], resolve: Resolve) -> Arm:
    """`[LABEL=]PRESET|FILE.toml [--any.setting VALUE ...]`; `common` overrides come first, so the arm's own win."""
    label, text = _split_label(text)
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise SettingsError(f"the arm `{text}` cannot be read: {error}", HINT) from None
    if not parts:
        raise SettingsError(f"an arm is empty{f' after its label `{label}`' if label else ''}", HINT)
    source, *own = parts
    label = label or " ".join([Path(source).name.removesuffix(".toml"), *own])
    words = (*common, *own)
    for word in words:
        name = word.partition("=")[0].replace("_", "-")
        if name in OURS:
            raise SettingsError(f"the arm `{text}` sets `{name}`, which compare does itself", OURS[name])
    return Arm(label, source, words, resolve(source, words))


def _split_label(text: str) -> tuple[str, str]:
    """A label ends at the first `=`, unless that belongs to a setting or to a file's name."""
    label, equals, rest = text.partition("=")
    if not equals or " --" in label or Path(text.split(" --")[0].strip()).is_file():
        return "", text
    return label.strip(), rest


def parse_arms(texts: Sequence[str], common: Sequence[str], resolve: Resolve) -> list[Arm]:
    arms = [parse_arm(text, common, resolve) for text in texts]
    seen: dict[str, Arm] = {}
    for arm in arms:
        if not arm.folder or len(arm.folder) > 120:
            raise SettingsError(f"`{arm.label}` makes no good folder name", 'name the arm: "LABEL=preset ..."')
        if arm.folder.lower() in seen:  # some file systems take `A` and `a` for the same
            raise SettingsError(
                f"two arms are called `{arm.label}`", f'name them apart: "one={arm.source} ..." "other=..."'
            )
        seen[arm.folder.lower()] = arm
    return arms
