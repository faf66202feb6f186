"""What an env's name says before any env is made: whether it names one at all, and whether making it runs code of the
user's own."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from typing import Any

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.given import is_given
from hotloop.core.user_files import whole_path
from hotloop.presets.env_settings import ANY_ENV


def require_named(env_id: str) -> None:
    """Refuse settings for any env, and a file without a name, telling those it has; reads the file, runs nothing."""
    if env_id == ANY_ENV:
        raise SettingsError(
            "these settings are for any env, and none is named",
            "name one: `--env.id CartPole-v1`, from Python `env={'id': 'CartPole-v1'}`; `hotloop envs` lists them",
        )
    if not env_id.endswith(".py") or ":" in env_id:
        return
    try:
        tree = ast.parse(Path(env_id).expanduser().read_text())
    except (OSError, ValueError, SyntaxError) as error:
        raise EnvError(f"`{env_id}` cannot be read: {error}", f"an env of your own is `{env_id}:Class`") from None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    likely = [node for node in classes if "step" in {getattr(part, "name", "") for part in node.body}] or classes
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    names = " or ".join(f"`{env_id}:{node.name}`" for node in likely or functions)
    raise EnvError(
        f"`{env_id}` is a file; which class of it is the env?",
        f"give {names}" if names else f"it has no class at its top level; an env of your own is `{env_id}:Class`",
    )


def needs_trust(env_id: str) -> bool:
    """Whether making this env runs a user's file or module."""
    return ":" in env_id


def refuse_untrusted(env_id: str) -> None:
    """Of an env's id, or of a network's torso."""
    if needs_trust(env_id) and not is_given(env_id):
        raise EnvError(f"`{env_id}` runs code from outside hotloop", "pass `--trust` if you know where it comes from")


def with_whole_path(settings: Any) -> Any:
    """Settings of a run in which files of the user's are found again from any folder, and are the same however they
    were typed."""
    env = dataclasses.replace(settings.env, id=whole_path(settings.env.id))
    network = dataclasses.replace(settings.network, torso=whole_path(settings.network.torso))
    return dataclasses.replace(settings, env=env, network=network)
