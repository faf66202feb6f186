"""Named settings: one TOML file per workload and algorithm."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.core.suggest import nearest

RENAMED = {
    "sfc-original": ("sfc-like", "docs/sfc.md"),
    "sfc-original-fast": ("sfc-like-fast", "docs/sfc.md"),
    "durotaxis-original": ("durotaxis-like", "docs/durotaxis.md"),
}
"""Presets that promised more likeness than there is: what they are called now, and where the differences stand."""


def preset_names() -> list[str]:
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def preset_text(name: str) -> str:
    """The TOML of a preset, comments included."""
    if name in RENAMED:
        now, page = RENAMED[name]
        raise SettingsError(
            f"the preset `{name}` is called `{now}`: it is not the original in everything",
            f"`{now}` has its settings; {page} lists what differs",
        )
    if name not in preset_names():
        near = nearest(name, preset_names())
        known = ", ".join(preset_names())
        raise SettingsError(
            f"no preset and no file is called `{name}`",
            (f"did you mean `{near}`? " if near else "") + f"presets: {known}; or give a path ending in .toml",
        )
    return resources.files(__package__).joinpath(f"{name}.toml").read_text()


def preset_tree(name: str) -> dict[str, Any]:
    return tomllib.loads(preset_text(name))
