"""`hotloop envs`, `hotloop envs check ID`."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from typing import Any

from hotloop.cli.arguments import VerbParser, env_overrides, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line


def run(words: list[str]) -> int:
    parser = VerbParser(
        "envs",
        "List the environments that can be trained on, or check one against the contract.\n"
        "An id is one of ours (cartpole), a Gymnasium id (CartPole-v1), module:Id-v0, or path/to/file.py:Class.\n"
        "Settings of the env can be given: `--env.wrappers 'FrameStackObservation(4)'`.",
        "hotloop envs check my_env.py:MyEnv",
        usage="hotloop envs [list | check ID] [--num-envs N] [--env-steps N] [--env.any.setting VALUE ...] [--json]",
    )
    parser.add_argument("action", nargs="?", choices=["list", "check"], default="list")
    parser.add_argument("id", nargs="?", help="the env to check")
    parser.add_argument("--num-envs", type=int, default=3, help="how many copies to check together (default 3)")
    parser.add_argument("--env-steps", type=int, default=1_000, help="how many env steps to play (default 1000)")
    arguments, overrides = parser.parse_known_args(words)
    env = env_overrides("envs", overrides)
    if arguments.action == "list":
        return _list(arguments.json)
    if "id" in env:
        raise SettingsError("`--env.id` is no option of `envs`", "name the env itself: `hotloop envs check ID`")
    if arguments.id is None:
        raise SettingsError("`hotloop envs check` needs an env id", "for example `hotloop envs check CartPole-v1`")
    return _check(arguments, env)


def _list(as_json: bool) -> int:
    from hotloop.envs.registry import list_envs

    rows = list_envs()
    if as_json:
        print_json({"envs": [{"id": name, "kind": kind} for name, kind in rows]})
    else:
        for name, kind in rows:
            print_line(f"{name:32} {kind}")
    return 0


def _check(arguments: Namespace, env: dict[str, Any]) -> int:
    import numpy as np

    from hotloop.core.settings import build
    from hotloop.envs.contract import check_env
    from hotloop.envs.registry import make_envs
    from hotloop.presets.env_settings import EnvSettings

    settings = build(EnvSettings, {"id": arguments.id, "num_envs": arguments.num_envs} | env)
    make_envs(settings, 1, np.zeros(1, np.uint64)).close()  # one that cannot be made is one sentence, not a table
    results = check_env(settings, env_steps=arguments.env_steps)
    if arguments.json:
        print_json({"checks": [dataclasses.asdict(result) for result in results]})
    else:
        for result in results:
            verdict = "FAIL" if not result.ok else "ok" if result.checked else "not checked"
            print_line(f"{verdict:11}  {result.name}{': ' + result.detail if result.detail else ''}")
    return 0 if all(result.ok for result in results) else 1
