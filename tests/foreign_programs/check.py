"""The doctor on programs of other libraries: `python tests/foreign_programs/check.py [--truth | --doctor] [NAME ...]`.

For each program first the truth: as it is and with the edit of its `.toml` file, by turns, each at two lengths. The
cost of an env step is the difference of processor time (of the process and its children) over the difference of env
steps, so start-up drops out. Then the doctor, as a user runs it, on the program as it is. Prints a row for each.
"""

import argparse
import importlib.metadata
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from hotloop.doctor.recorder.meters import usable_cores

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
TORCH = "torch==2.13.0"
"""Installed first and alone: the newest would bring gigabytes of CUDA."""
NEAR_LINES = 3
DOCTOR_ENV_STEPS = 100_000
"""The doctor ends a program when it has seen enough."""
RUN_SECONDS, INSTALL_SECONDS = 600, 1200
LEAST_FOR_INTERVAL, RESAMPLES = 5, 2000
HEADING = "| program | the truth | measured | first finding | lines off | said | |\n|---|---|---:|---|---:|---:|---|"


@dataclass(frozen=True)
class Program:
    name: str
    packages: tuple[str, ...]
    environment: str
    truth: str
    rules: tuple[str, ...]
    """Those that name the truth; none where the doctor has no rule for it: then it must find nothing."""
    line: str
    """A text of the line to edit."""
    edits: tuple[tuple[str, str], ...]
    env_steps: tuple[int, int]
    edited_env_steps: tuple[int, ...] = ()
    """Where the edited program is so much faster that these lengths tell nothing: longer ones for it."""
    clock: str = "processor"
    cores: int = 1
    arguments: tuple[str, ...] = ()
    """After the number of env steps."""

    @property
    def source(self) -> str:
        return (HERE / f"{self.name}.py").read_text()

    @property
    def edited(self) -> str:
        text = self.source
        for old, new in self.edits:
            if old not in text:
                raise SystemExit(f"error: {self.name}.py has no {old!r}, which {self.name}.toml edits")
            text = text.replace(old, new)
        return text


def programs() -> list[Program]:
    def read(path: Path) -> Program:
        lists = tomllib.loads(path.read_text())
        lists["edits"] = [tuple(edit) for edit in lists["edits"]]
        fields: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in lists.items()}
        return Program(path.stem, **fields)

    return [read(path) for path in sorted(HERE.glob("*.toml"))]


def has(interpreter: str, packages: Iterable[str]) -> bool:
    """Whether they are installed there, in the versions asked for."""
    ask = (
        "import sys, importlib.metadata as m\n"
        "for one in sys.argv[1:]:\n"
        "    name, _, version = one.partition('==')\n"
        "    assert m.version(name.partition('[')[0]) == (version or m.version(name.partition('[')[0]))"
    )
    return subprocess.run([interpreter, "-c", ask, *packages], capture_output=True).returncode == 0


def interpreter_of(program: Program, environments: Path) -> str:
    """This Python where it has what the program needs, else that of the program's environment, made when it is missing.

    Raises RuntimeError where that cannot be installed."""
    if has(sys.executable, program.packages):
        return sys.executable
    home = environments / program.environment
    python = str(home / "bin" / "python")
    if not home.exists():
        venv.create(home, with_pip=True)
    if has(python, program.packages):
        return python
    constraints = home / "constraints.txt"
    constraints.write_text(f"{TORCH}\n")
    together = {one for other in programs() if other.environment == program.environment for one in other.packages}
    for wanted in ([TORCH], sorted(together)):
        command = [python, "-m", "pip", "install", "-q", "-c", str(constraints), *wanted]
        result = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        if result.returncode:
            raise RuntimeError((result.stderr.strip().splitlines() or ["pip failed"])[-1])
    return python


def seconds(interpreter: str, source: str, program: Program, env_steps: int) -> float:
    """Of one run, in a folder of its own: processor time with the children's, or wall-clock time."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / f"{program.name}.py"
        script.write_text(source)
        paths = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH", "")]))
        with open(Path(folder) / "printed", "w+") as printed:
            start = time.monotonic()
            child = subprocess.Popen(
                [interpreter, script.name, str(env_steps), *program.arguments],
                cwd=folder, env={**os.environ, "PYTHONPATH": paths}, stdout=printed, stderr=printed,
            )  # fmt: skip
            _, status, used = os.wait4(child.pid, 0)
            wall = time.monotonic() - start
            child.returncode = os.waitstatus_to_exitcode(status)  # it was waited for behind subprocess's back
            if child.returncode:
                printed.seek(0)
                raise RuntimeError(f"exit code {child.returncode}: {printed.read()[-2000:]}")
    return wall if program.clock == "wall" else used.ru_utime + used.ru_stime


def cost(interpreter: str, program: Program, edited: bool) -> float:
    """Seconds per env step."""
    source = program.edited if edited else program.source
    short, long = edited and program.edited_env_steps or program.env_steps
    less, more = (seconds(interpreter, source, program, env_steps) for env_steps in (short, long))
    return (more - less) / (long - short)


def measured(interpreter: str, program: Program, pairs: int) -> str:
    """Cost as it is over that with the edit: the median, and its 95 % interval by resampling (below five pairs their
    range)."""
    seconds(interpreter, program.edited, program, program.env_steps[0])  # what is compiled once is in its cache then
    ratios = []
    for pair in range(pairs):
        order = (False, True) if pair % 2 == 0 else (True, False)
        costs = {edited: 1e6 * cost(interpreter, program, edited) for edited in order}
        ratios.append(costs[False] / costs[True])
        said = f"{program.name}: {costs[False]:.1f} / {costs[True]:.1f} us = {ratios[-1]:.2f}"
        print(said, file=sys.stderr, flush=True)
    low, high = interval(ratios)
    return f"{median(ratios):.2f} [{low:.2f}, {high:.2f}], {pairs} pairs"


def interval(ratios: list[float]) -> tuple[float, float]:
    if len(ratios) < LEAST_FOR_INTERVAL:
        return min(ratios), max(ratios)
    draw = random.Random(0)
    medians = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return medians[round(0.025 * RESAMPLES)], medians[round(0.975 * RESAMPLES) - 1]


def diagnosed(interpreter: str, program: Program, reports: Path | None) -> dict:
    """The doctor's report; its text and JSON are kept in `reports`."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "program" / f"{program.name}.py"
        script.parent.mkdir()
        script.write_text(program.source)
        saved = Path(folder) / "report.json"
        command = [sys.executable, "-m", "hotloop", "doctor", "--python", interpreter, "--save", str(saved)]
        command += [script.name, str(DOCTOR_ENV_STEPS), *program.arguments]
        paths = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH", "")]))
        result = subprocess.run(
            command, cwd=script.parent, env={**os.environ, "PYTHONPATH": paths},
            capture_output=True, text=True, timeout=RUN_SECONDS,
        )  # fmt: skip
        if reports:
            reports.mkdir(parents=True, exist_ok=True)
            (reports / f"{program.name}.txt").write_text(f"{result.stdout}\n--- stderr ---\n{result.stderr}")
            if saved.exists():
                shutil.copy(saved, reports / f"{program.name}.json")
        if not saved.exists():
            raise RuntimeError(f"the doctor made no report: {result.stderr[-2000:]}")
        return json.loads(saved.read_text())


def lines_off(program: Program, where: str) -> int | None:
    """Lines between a finding's place and the nearest line with the text to edit; None in another file."""
    file, _, number = where.rpartition(":")
    if Path(file).name != f"{program.name}.py" or not number.isdigit():
        return None
    lines = program.source.splitlines()
    return min((abs(int(number) - place) for place, line in enumerate(lines, 1) if program.line in line), default=None)


def judged(program: Program, report: dict) -> list[str]:
    """The cells of a row that the doctor decides."""
    if not report["findings"]:
        return ["none", "-", "-", "miss" if program.rules else "hit"]
    first = report["findings"][0]
    off = lines_off(program, first["where"])
    hit = first["rule"] in program.rules and off is not None and off <= NEAR_LINES
    found = re.sub(r".*/", "", f"{first['where']}")
    return [f"{first['rule']} {found}", str(off), f"{first['expected_gain']:.2f}", "hit" if hit else "**miss**"]


def row(program: Program, options: argparse.Namespace) -> str:
    if usable_cores() < program.cores:
        return f"| `{program.name}` | not run: it needs {program.cores} cores |"
    try:
        interpreter = interpreter_of(program, options.environments)
        truth = "-" if options.doctor else measured(interpreter, program, options.pairs)
        cells = ["-"] * 4 if options.truth else judged(program, diagnosed(interpreter, program, options.reports))
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return f"| `{program.name}` | not run: {error} |"
    return f"| `{program.name}` | {program.truth} | {' | '.join([truth, *cells])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--environments", type=Path, default=HERE / ".environments", help="where the venvs are")
    parser.add_argument("--pairs", type=int, default=5, help="program and edited program, by turns, so often")
    parser.add_argument("--reports", type=Path, help="a folder to keep the doctor's reports in")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--truth", action="store_true", help="no doctor")
    only.add_argument("--doctor", action="store_true", help="no timing")
    options = parser.parse_args()
    print(f"hotloop {importlib.metadata.version('hotloop')}, {usable_cores()} cores\n\n{HEADING}", flush=True)
    for program in programs():
        if not options.names or program.name in options.names:
            print(row(program, options), flush=True)


if __name__ == "__main__":
    main()
