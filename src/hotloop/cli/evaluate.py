"""`hotloop evaluate RUN`."""

from __future__ import annotations

from hotloop.cli.arguments import VerbParser, print_json


def run(words: list[str]) -> int:
    parser = VerbParser(
        "evaluate",
        "Play fresh episodes with a run's best agent.",
        "hotloop evaluate runs/cartpole-dqn-20260101-120000 --episodes 200",
    )
    parser.add_argument("run", help="a run's directory")
    parser.add_argument("--episodes", type=int, default=100, help="how many episodes (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="which episodes (default 0)")
    parser.add_argument("--trust", action="store_true", help="allow the run's env to be imported from a file or module")
    arguments = parser.parse_args(words)
    from hotloop import api
    from hotloop.cli.results import print_evaluation

    evaluation = api.evaluate(arguments.run, episodes=arguments.episodes, seed=arguments.seed, trust=arguments.trust)
    if arguments.json:
        print_json(evaluation)
    else:
        print_evaluation(evaluation)
    return 0
