"""Which settings belong to which algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotloop.algos.dqn_settings import DQNSettings
from hotloop.algos.ppo_settings import PPOSettings
from hotloop.core.errors import SettingsError
from hotloop.core.settings import build
from hotloop.core.values import nearest, shortened
from hotloop.runs.directory import SETTINGS, Run

RunSettings = DQNSettings | PPOSettings
"""Of any run."""
ALGORITHMS: dict[str, type[RunSettings]] = {"dqn": DQNSettings, "ppo": PPOSettings}


def settings_class(name: Any) -> type[RunSettings]:
    if not isinstance(name, str) or name not in ALGORITHMS:
        near = nearest(str(name)[:80], ALGORITHMS)
        known = ", ".join(f"`{known}`" for known in ALGORITHMS)
        raise SettingsError(
            f"`algorithm` is {shortened(name)}, expected {known}", f"did you mean `{near}`?" if near else ""
        )
    return ALGORITHMS[name]


def class_of(tree: Mapping[str, Any]) -> type[RunSettings]:
    """The settings class of a tree, by its `algorithm`."""
    return settings_class(tree.get("algorithm", "dqn"))


def settings_of(run: Run, trust: bool = False, tree: Mapping[str, Any] | None = None) -> RunSettings:
    """All settings of a run, those that its file does not name at their defaults; `tree`: what the file says, where it
    was read before. Raises SettingsError where this hotloop does not understand them."""
    tree = run.settings() if tree is None else tree
    return build(class_of(tree), {**tree, "trust": trust}, source=str(run.path / SETTINGS))
