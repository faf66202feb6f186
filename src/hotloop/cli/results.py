"""The end of a run in words: what was learned and where the time went."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from hotloop.cli.console import answer_console
from hotloop.doctor.rules.reporting import LEAST_EVALUATION_SHARE
from hotloop.doctor.trace import EVALUATE

FEW_EPISODES = 10


def print_result(result: dict[str, Any]) -> None:
    console = answer_console()
    evaluation, last = result["evaluation"], result["final_evaluation"]
    console.print(
        Text("\nlearned", "bold"),
        f" mean return {evaluation['mean_return']:.1f} ± {evaluation['std_return']:.1f} over "
        f"{evaluation['episodes']} fresh episodes (best weights; the last ones: {last['mean_return']:.1f})",
    )
    if own := _own_measures(evaluation):
        console.print(f"         {own}")
    console.print(
        Text("made", "bold"),
        f"    {result['env_steps']:,} env steps, {result['updates']:,} updates, "
        f"{result['episodes']:,} episodes in {result['seconds']:.1f} s: "
        f"{result['env_steps_per_second']:,.0f} env steps/s while training, "
        f"{result['env_steps'] / result['seconds']:,.0f} all in all ({result['lane']} lane)",
    )
    console.print(_phase_table(result["phases"]))
    console.print(Text("run", "bold"), f"     {result['run']}", soft_wrap=True)


def remarks(result: dict[str, Any]) -> list[str]:
    """What a reader of the summary should know: a judgement on few episodes, and what LOG003 of the doctor says."""
    said, phases = [], result["phases"]
    if (episodes := result["evaluation"]["episodes"]) < FEW_EPISODES:
        said.append(
            f"judged on {episodes} episode{'s' * (episodes > 1)} only: `hotloop evaluate '{result['run']}' --episodes "
            "100` says more, or `--evaluation.final-episodes 100` in the next run"
        )
    seconds = {name: phase["seconds"] for name, phase in phases.items() if name not in ("start-up", "compile")}
    share = seconds.get(EVALUATE, 0.0) / (sum(seconds.values()) or 1.0)
    if share >= LEAST_EVALUATION_SHARE:
        said.append(
            f"LOG003: evaluation takes {share:.0%} of the loop ({seconds[EVALUATE]:.1f} s), and its env steps teach "
            "nothing; a larger `--evaluation.every`, or fewer `--evaluation.episodes` and "
            "`--evaluation.final-episodes`, give the time back"
        )
    return said


def _own_measures(evaluation: dict[str, Any]) -> str:
    """What the workload measures beside the return: scores, rates; the terms of a reward are left to `result.json`."""
    told = ("episodes", "mean_return", "std_return", "mean_length")
    names = [name for name in evaluation if name not in told and not name.startswith("reward_")]
    measured = {name: evaluation[name] for name in names if evaluation[name] is not None}
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in measured.items())


def _phase_table(phases: dict[str, dict[str, float]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("phase")
    table.add_column("seconds", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    for name, phase in sorted(phases.items(), key=lambda item: -item[1]["seconds"]):
        table.add_row(name, f"{phase['seconds']:.2f}", f"{phase['share']:.1%}", "█" * round(40 * phase["share"]))
    return table


def print_evaluation(evaluation: dict[str, Any]) -> None:
    console = answer_console()
    width = max(16, *map(len, evaluation))
    for name, value in evaluation.items():
        text = "-" if value is None else f"{value:,.2f}" if isinstance(value, float) else str(value)
        console.print(f"{name:{width}} {text}")
