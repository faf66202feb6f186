"""The settings of a run, wherever they come from: a preset with overrides, words of a command line, a run's directory.

Imports no PyTorch, so that a typo in a preset's name is answered at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.core.given import require_given
from hotloop.core.overrides import parse_overrides
from hotloop.core.settings import as_tree, build, merge, nested
from hotloop.core.user_files import whole_path
from hotloop.core.values import nearest, shortened
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.presets.env_names import refuse_untrusted, require_named, with_whole_path
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.named import settings_tree
from hotloop.presets.ppo_settings import PPOSettings
from hotloop.presets.sac_settings import SACSettings
from hotloop.runs.directory import SETTINGS, Run

RunSettings = DQNSettings | PPOSettings | SACSettings
"""Of any run."""
ALGORITHMS: dict[str, type[RunSettings]] = {"dqn": DQNSettings, "ppo": PPOSettings, "sac": SACSettings}


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


def preset(name: str, **overrides: Any) -> RunSettings:
    """The settings of a preset or a TOML file, with overrides; names may be dotted, as on the command line.

    settings = hotloop.preset("cartpole-dqn", seed=1, env={"num_envs": 8}, **{"learner.lane": "eager"})
    """
    tree = merge(settings_tree(name), nested(overrides))
    return build(class_of(tree), tree, source=name)


def settings_from_argv(name: str, words: Sequence[str]) -> RunSettings:
    """A preset or TOML file with overrides: `["--seed", "3", "--env.num-envs", "8"]`.

    An env in a file or module is code, and so is a torso in a file. Whoever names it on the command line wants it run;
    one that a TOML file names must be allowed with `--trust`.
    """
    tree = settings_tree(name)
    cls = class_of(tree)
    build(cls, tree, source=name)  # a mistake in the file is told as the file's
    overrides = parse_overrides(words, cls)
    settings = build(cls, merge(tree, overrides), source="the command line")
    require_named(settings.env.id)
    require_given("env", settings.env.id)
    require_given("network", settings.network.torso)
    for table, key, code in (("env", "id", settings.env.id), ("network", "torso", settings.network.torso)):
        if key not in overrides.get(table, {}) and not settings.trust:
            refuse_untrusted(code)
    found: RunSettings = with_whole_path(settings)
    return found


def label_of(settings: RunSettings, source: str = "") -> str:
    """What a run is called: by its preset or file, or by env and algorithm where the env is not the one named there."""
    if source:
        named = build(EnvSettings, settings_tree(source).get("env", {})).id
        if whole_path(named) == settings.env.id:
            return Path(source).stem
    return f"{settings.env.id.rpartition(':')[2]}-{settings.algorithm}"


def tree_from_argv(name: str, words: Sequence[str]) -> dict[str, Any]:
    return as_tree(settings_from_argv(name, words))


def settings_of(run: Run, trust: bool = False, tree: Mapping[str, Any] | None = None) -> RunSettings:
    """All settings of a run, those that its file does not name at their defaults; `tree`: what the file says, where it
    was read before. Raises SettingsError where this hotloop does not understand them."""
    tree = run.settings() if tree is None else tree
    return build(class_of(tree), {**tree, "trust": trust}, source=str(run.path / SETTINGS))
