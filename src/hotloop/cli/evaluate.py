"""`hotloop evaluate RUN`, or `hotloop evaluate PRESET --policy NAME`."""

from __future__ import annotations

from hotloop.cli.arguments import VerbParser, env_overrides, print_json


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
        env=env_overrides("evaluate", overrides),
    )
    if arguments.json:
        print_json(evaluation)
    else:
        print_evaluation(evaluation)
    return 0
