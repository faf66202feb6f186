"""`hotloop deploy RUN`: a durotaxis agent on a substrate of choice."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError

SUBSTRATES = ("linear", "exponential", "random")


def run(words: list[str]) -> int:
    parser = VerbParser(
        "deploy",
        "Let a trained durotaxis agent migrate on a chosen substrate, and say how it fared: return, length, how often\n"
        "it reached the goal (success), where its centroid ended, how large its colony was.\n"
        "Without a substrate: on all three, one after the other.",
        "hotloop deploy runs/durotaxis-ppo-20260101-120000 --substrate exponential --m 0.008 --episodes 200",
    )
    parser.add_argument("run", help="a run's directory")
    parser.add_argument("--substrate", choices=SUBSTRATES, help="how stiffness grows to the right")
    parser.add_argument("--m", type=float, default=0.0, help="its slope (linear) or rate (exponential); 0: the usual")
    parser.add_argument("--b", type=float, default=0.0, help="its stiffness at the left; 0: the usual")
    parser.add_argument("--episodes", type=int, default=100, help="how many episodes of each (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="which episodes (default 0)")
    arguments = parser.parse_args(words)
    _check(arguments)
    results = {
        name: _deploy(arguments, name) for name in ([arguments.substrate] if arguments.substrate else SUBSTRATES)
    }
    if arguments.json:
        print_json({"run": arguments.run, "substrates": results})
    else:
        _print(results)
    return 0


def _check(arguments: Namespace) -> None:
    if (arguments.m or arguments.b) and arguments.substrate not in ("linear", "exponential"):
        raise SettingsError("`--m` and `--b` want a substrate", "`--substrate linear` or `--substrate exponential`")


def _deploy(arguments: Namespace, substrate: str) -> dict[str, Any]:
    from hotloop import api
    from hotloop.runs.directory import Run

    env_id = api.settings_of(Run.open(arguments.run), trust=False).env.id
    if env_id != "durotaxis":
        raise SettingsError(
            f"{arguments.run} was trained on `{env_id}`, which has no substrate", "`hotloop evaluate` plays it"
        )
    options = {"substrate": substrate, "m": arguments.m, "b": arguments.b}
    return api.evaluate(arguments.run, episodes=arguments.episodes, seed=arguments.seed, env={"options": options})


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
