"""`hotloop durotaxis deploy RUN`: a trained agent on a substrate of choice."""

from __future__ import annotations

from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.terminal import say
from hotloop.workloads.durotaxis import deploy as deployment
from hotloop.workloads.durotaxis.deploy import COLUMNS, SUBSTRATES


def deploy(words: list[str]) -> int:
    """Let a trained agent migrate on a substrate of choice."""
    parser = VerbParser(
        "durotaxis deploy",
        "Let a trained durotaxis agent migrate on a chosen substrate, and say how it fared: return, length, how often\n"
        "it reached the goal (success), where its centroid ended, how large its colony was.\n"
        "Without a substrate: on all three, one after the other. `--log FILE` also writes what every node was and did.",
        "hotloop durotaxis deploy runs/durotaxis-ppo-20260101-120000 --substrate exponential --m 0.008 --episodes 200",
    )
    parser.add_argument("run", help="a run's directory")
    parser.add_argument("--substrate", choices=SUBSTRATES, help="how stiffness grows to the right")
    parser.add_argument("--m", type=float, default=0.0, help="its slope (linear) or rate (exponential); 0: the usual")
    parser.add_argument("--b", type=float, default=0.0, help="its stiffness at the left; 0: the usual")
    parser.add_argument("--episodes", type=int, default=100, help="how many episodes of each (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="which episodes (default 0)")
    parser.add_argument(
        "--log",
        metavar="FILE",
        help=f"a row for each node at each step, as JSON lines (.jsonl) or CSV (.csv): {', '.join(COLUMNS)}",
    )
    arguments = parser.parse_args(words)
    told = deployment.deploy(
        arguments.run,
        substrate=arguments.substrate or "",
        m=arguments.m,
        b=arguments.b,
        episodes=arguments.episodes,
        seed=arguments.seed,
        log=arguments.log,
    )
    if "log" in told:
        say(f"{told['log']['rows']:,} rows in {told['log']['file']}")
    if arguments.json:
        print_json(told)
    else:
        _print(told["substrates"])
    return 0


def _print(results: dict[str, dict[str, Any]]) -> None:
    from rich.table import Table

    from hotloop.cli.console import answer_console

    table = Table(box=None)
    for heading in ("substrate", "episodes", "success", "return", "length", "final centroid", "colony"):
        table.add_column(heading, justify="left" if heading == "substrate" else "right")
    for name, result in results.items():
        table.add_row(
            name,
            f"{result['episodes']:,}",
            f"{result['success_rate']:.0%}",
            f"{result['mean_return']:.2f} ± {result['std_return']:.2f}",
            f"{result['mean_length']:.1f}",
            f"{result['final_centroid']:.0f}",
            f"{result['mean_colony_size']:.1f}",
        )
    answer_console().print(table)
