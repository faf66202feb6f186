"""Which settings belong to which algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotloop.algos.dqn_settings import DQNSettings
from hotloop.core.errors import SettingsError
from hotloop.core.suggest import nearest

ALGORITHMS: dict[str, type[DQNSettings]] = {"dqn": DQNSettings}


def settings_class(name: Any) -> type[DQNSettings]:
    if not isinstance(name, str) or name not in ALGORITHMS:
        near = nearest(str(name), ALGORITHMS)
        known = ", ".join(f"`{known}`" for known in ALGORITHMS)
        raise SettingsError(f"`algorithm` is `{name}`, expected {known}", f"did you mean `{near}`?" if near else "")
    return ALGORITHMS[name]


def class_of(tree: Mapping[str, Any]) -> type[DQNSettings]:
    """The settings class of a tree, by its `algorithm`."""
    return settings_class(tree.get("algorithm", "dqn"))
