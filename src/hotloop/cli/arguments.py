"""How every verb reads its words and prints its answer."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import HotloopError, SettingsError
from hotloop.core.extras import require_training
from hotloop.core.program import take_options
from hotloop.core.terminal import AnswerLostError, answer_stream, print_line

if TYPE_CHECKING:
    from hotloop.presets.registry import RunSettings


class VerbParser(argparse.ArgumentParser):
    """Mistakes become our own errors: one sentence, one hint."""

    def __init__(self, verb: str, description: str, example: str, **options: Any) -> None:
        super().__init__(
            prog=f"hotloop {verb}",
            description=description,
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **options,
        )
        self.add_argument("--json", action="store_true", help="print the answer as JSON on stdout")
        self.add_argument("--debug", action="store_true", help="show the whole traceback of an error")

    def parse_known_args(self, *words: Any, **more: Any) -> Any:
        arguments, rest = super().parse_known_args(*words, **more)
        take_options(getattr(arguments, "json", False), getattr(arguments, "debug", False))
        return arguments, rest

    def error(self, message: str) -> Any:
        raise SettingsError(message, f"`{self.prog} --help` explains")


def settings_from_argv(name: str, words: Sequence[str]) -> RunSettings:
    """A preset or TOML file with overrides, of a run that is to be trained now; what that takes is imported now, so
    that `--help` answers at once."""
    from hotloop.presets import registry

    settings = registry.settings_from_argv(name, words)
    require_training(f"training `{name}`")
    return settings


def require_above_zero(arguments: argparse.Namespace, *names: str, hint: str = "") -> None:
    for name in names:
        if (value := getattr(arguments, name)) is not None and value <= 0:
            raise SettingsError(f"`--{name.replace('_', '-')}` is {value}, expected above 0", hint)


def env_overrides(verb: str, words: Sequence[str]) -> dict[str, Any]:
    """What is left of a command line may change the env, and nothing else."""
    from hotloop.core.overrides import parse_overrides
    from hotloop.presets.dqn_settings import DQNSettings

    for word in words:
        if word.startswith("--") and not word.startswith("--env."):
            raise SettingsError(f"`{word}` is no option of `{verb}`", f"`hotloop {verb} --help` lists them")
    env: dict[str, Any] = parse_overrides(words, DQNSettings).get("env", {})
    return env


ANSWER_SCHEMA = 1
"""Of the answers that have no schema of their own; it grows where a key goes or means something else."""


def print_json(data: Mapping[str, Any]) -> None:
    """A verb's answer: one object with a `schema`. Control characters in it are escaped, as JSON asks for."""
    print_line(json.dumps({"schema": ANSWER_SCHEMA, **data}, indent=2))


def print_error(error: HotloopError) -> None:
    """What was told on stderr, for whoever reads stdout. It is told already: that nobody reads here is no error."""
    with contextlib.suppress(AnswerLostError):
        print_json({"error": error.message, "hint": error.hint})
        answer_stream().flush()
