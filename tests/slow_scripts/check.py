"""The doctor on every slow script and on its healthy twin: `python tests/slow_scripts/check.py [--turns N] [NAME ...]`.

Prints a row for each script: the rule that should come first and the one that does, how many lines away from the line
to edit, the gain that it predicts, the one that the twin has, and whether the twin is free of the finding. A gain is
measured by the recordings of script and twin, seconds of the loop per env step (processor time on a busy machine). With
`--turns` it is measured by running both without the doctor, by turns, so often, each for the env calls that the doctor
saw; so it is always where a gain is promised by the wall clock whatever else runs, and where the two recordings are
told by different clocks.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from hotloop.doctor.finding import PROMISE_NOTHING, Finding, findings
from hotloop.doctor.recorder.meters import usable_cores
from hotloop.doctor.rules import load_rules
from hotloop.doctor.script import ScriptPlan, record_script
from hotloop.doctor.trace import Trace

HERE = Path(__file__).parent
WAITING = ("MACHINE001", "MACHINE003", "MACHINE005", "MACHINE006", "ENV010")
"""Rules about time that passes while the loop's thread computes nothing: their gain is in wall-clock time."""
BY_THE_WALL, TURNS = ("MACHINE001", "MACHINE003", "MACHINE006"), 3
"""Rules that promise it on a busy machine too, with the queue for a core in it. Recordings of a script and its twin,
minutes apart, would compare what other programs did meanwhile: both are run by turns."""
MEASURED_BY_EXPERIMENT, LEAST_TO_COMPARE = ("MACHINE001", "MACHINE002"), 6.0
MEASURED_BY_TURNS = ("LOG003",)
"""The doctor counts the env steps of an evaluation too; the script counts those of training."""
NEED_CORES = ("ENV010", "MACHINE008")
"""Rules about two cores or more."""
NEAR_LINES, NEAR_GAIN = 3, 1.5
LONG = ("--env-calls", "100000000")
"""The doctor ends a script when it has seen enough."""
HEADING = "| script | rule | first finding | lines off | predicted | measured | others | twin | |"


def table() -> list[tuple[str, str, str]]:
    """Name, rule and a text of the line to edit, from the README beside this file."""
    rows = r"^\| `(\w+)` \| .* \| (\w+) \| `(.*)` \| .* \|$"
    return re.findall(rows, (HERE / "README.md").read_text(), re.MULTILINE)


def recorded(name: str, rule: str, seconds: float, *arguments: str) -> Trace:
    threads = rule in MEASURED_BY_EXPERIMENT
    seconds = max(seconds, LEAST_TO_COMPARE) if threads else seconds
    plan = ScriptPlan(seconds=seconds, counting=not threads, counting_seconds=seconds, threads=threads)
    return record_script(HERE / f"{name}.py", (*LONG, *arguments), plan, lambda text: None)


def lines_off(script: Path, text: str, where: str) -> int | None:
    """Lines between a finding's place and the nearest line that holds `text`, in the script or in the loop that they
    share; None where they are in other files."""
    file, _, number = where.rpartition(":")
    if Path(file).name not in (script.name, "training.py") or not number.isdigit():
        return None
    lines = script.with_name(Path(file).name).read_text().splitlines()
    return min((abs(int(number) - place) for place, line in enumerate(lines, 1) if text in line), default=None)


def cost(name: str, rule: str, *arguments: str) -> float:
    """Microseconds per env step, as the script prints it."""
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    wall, processor = re.findall(r"([\d.]+) (?:wall|processor)", printed)
    return float(wall if rule in WAITING else processor)


def pair(name: str, rule: str, arguments: tuple[str, ...], healthy_first: bool) -> float:
    """The script's cost over its twin's, one run after the other."""
    costs = dict.fromkeys((healthy_first, not healthy_first), 0.0)
    for healthy in costs:
        costs[healthy] = cost(name, rule, *arguments, *(["--healthy"] if healthy else []))
    return costs[False] / costs[True]


def measured(name: str, rule: str, slow: Trace, healthy: Trace, turns: int) -> float:
    if turns or rule in (*MEASURED_BY_TURNS, *BY_THE_WALL) or slow.clock != healthy.clock:
        seen = slow.counts.env_calls + slow.counts.skipped_env_steps / max(1.0, slow.envs_at_once)
        pairs = range(turns or (1 if rule in MEASURED_BY_TURNS else TURNS))
        # What waits does not grow: short runs, so that both of a pair meet the same other programs.
        calls = "--env-calls", str(max(1, round(seen / (len(pairs) if rule in BY_THE_WALL else 1))))
        return median(pair(name, rule, calls, healthy_first=bool(number % 2)) for number in pairs)
    per_step = [trace.loop_seconds / max(1, trace.counts.env_steps) for trace in (slow, healthy)]
    return per_step[0] / per_step[1] if per_step[1] else 0.0


def row(name: str, rule: str, text: str, seconds: float, turns: int) -> tuple[str, bool]:
    """The row, and whether all of it is as it should be."""
    slow, healthy = recorded(name, rule, seconds), recorded(name, rule, seconds, "--healthy")
    found, left = findings(slow), findings(healthy)
    first = found[0] if found else None
    off = lines_off(HERE / f"{name}.py", text, first.where) if first else None
    right = first is not None and first.rule == rule and off is not None and off <= NEAR_LINES
    gain, predicted = measured(name, rule, slow, healthy, turns), first.expected_gain if first else 1.0
    near = rule in PROMISE_NOTHING or max(gain / predicted, predicted / max(gain, 1e-9)) <= NEAR_GAIN
    silent = rule not in [one.rule for one in left]
    problems = [*([] if right else ["finding"]), *([] if near else ["gain"]), *([] if silent else ["twin"])]
    cells = [
        f"`{name}`",
        rule,
        f"{first.rule} {first.where}" if first else "none",
        "-" if off is None else str(off),
        f"{predicted:.2f}",
        f"{gain:.2f}",
        _told(found[1:]),
        "silent" if not left else _told(left),
        ", ".join(problems),
    ]
    return f"| {' | '.join(cells)} |", not problems


def _told(found: list[Finding]) -> str:
    return " ".join(f"{one.rule} {one.expected_gain:.2f}" for one in found[:3])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=4.0, help="loop time to record per run")
    parser.add_argument("--turns", type=int, default=0, help="runs without the doctor by which the gain is measured")
    options = parser.parse_args()
    load_rules()
    print(f"{HEADING}\n|---|---|---|---:|---:|---:|---|---|---|")
    start, right, rows = time.monotonic(), 0, 0
    for name, rule, text in table():
        if options.names and name not in options.names:
            continue
        if rule in NEED_CORES and usable_cores() < 2:
            print(f"| `{name}` | {rule} | not run: it needs two cores |")
            continue
        line, is_right = row(name, rule, text, options.seconds, options.turns)
        right, rows = right + is_right, rows + 1
        print(line, flush=True)
    print(f"\n{right} of {rows} as they should be, in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
