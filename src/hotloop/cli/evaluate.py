"""`hotloop evaluate RUN`, or `hotloop evaluate PRESET --policy NAME`."""

from __future__ import annotations

from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError


def run(words: list[str]) -> int:
    parser = VerbParser(
        "evaluate",
        "Play fresh episodes with a run's best agent, or with a policy that does not learn.\n"
        "Settings of the env can be overridden: `--env.options.max_data_centres 8`.",
        "hotloop evaluate runs/cartpole-dqn-20260101-120000 --episodes 200",
        usage="hotloop evaluate RUN|PRESET [--policy NAME] [--episodes N] [--env.any.setting VALUE ...] [--json]",
    )
    parser.add_argument("run", help="a run's directory; with --policy also a preset")
    parser.add_argument(
        "--policy", default="", help="instead of the agent: `random`, or a rule of the env's (sfc: heuristic, nearest)"
    )
    parser.add_argument("--episodes", type=int, default=100, help="how many episodes (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="which episodes (default 0)")
    parser.add_argument("--trust", action="store_true", help="allow the run's env to be imported from a file or module")
    arguments, overrides = parser.parse_known_args(words)
    from hotloop import api
    from hotloop.cli.progress import print_evaluation

    evaluation = api.evaluate(
        arguments.run,
        episodes=arguments.episodes,
        seed=arguments.seed,
        trust=arguments.trust,
        policy=arguments.policy,
        env=_env_overrides(overrides),
    )
    if arguments.json:
        print_json(evaluation)
    else:
        print_evaluation(evaluation)
    return 0


def _env_overrides(words: list[str]) -> dict[str, Any]:
    """What is left of the command line may change the env, and nothing else."""
    from hotloop.algos.dqn_settings import DQNSettings
    from hotloop.core.overrides import parse_overrides

    for word in words:
        if word.startswith("--") and not word.startswith("--env."):
            raise SettingsError(f"`{word}` is no option of `evaluate`", "`hotloop evaluate --help` lists them")
    return parse_overrides(words, DQNSettings).get("env", {})
