"""Predicted against measured: `python tests/slow_scripts/gains.py [PATIENT ...]`.

Predicted is the expected gain of the disease's finding; measured is what the twin (`--healthy`) gains, in processor
time (wall-clock where the disease is waiting), the median over runs by turns.
A factor above 1.5 between them is marked.
"""

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

from hotloop.doctor.finding import findings
from hotloop.doctor.rules import load_rules
from hotloop.doctor.script import ScriptPlan, record_script

HERE = Path(__file__).parent
WAITING = ("MACHINE003", "MACHINE005", "MACHINE001", "MACHINE006", "ENV010")
MEASURED_BY_EXPERIMENT = ("MACHINE001", "MACHINE002")
PROMISES_NOTHING = ("LOG004",)
"""What it finds is a wrong figure, not a slow loop."""
TURNS = 3


def table() -> list[tuple[str, str]]:
    return re.findall(r"^\| `(\w+)` \| .*? \| (\w+) \|", (HERE / "README.md").read_text(), re.MULTILINE)


def predicted(name: str, rule: str) -> float:
    """The expected gain of the finding; 1 where there is none."""
    plan = ScriptPlan(seconds=4.0, counting_seconds=5.0, threads=rule in MEASURED_BY_EXPERIMENT, threads_seconds=8.0)
    trace = record_script(HERE / f"{name}.py", (), plan, lambda text: None)
    return next((one.expected_gain for one in findings(trace, load_rules()) if one.rule == rule), 1.0)


def cost(name: str, rule: str, *arguments: str) -> float:
    """Microseconds per env step, as the patient says itself."""
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    wall, processor = re.findall(r"([\d.]+) (?:wall|processor)", said)
    return float(wall if rule in WAITING else processor)


def measured(name: str, rule: str) -> float:
    return median(cost(name, rule) / cost(name, rule, "--healthy") for _ in range(TURNS))


def main() -> None:
    wanted = sys.argv[1:]
    print("| patient | rule | predicted | measured | |\n|---|---|---:|---:|---|")
    for name, rule in table():
        if (wanted and name not in wanted) or rule in PROMISES_NOTHING:
            continue
        expects, gains = predicted(name, rule), measured(name, rule)
        far = max(expects / gains, gains / expects) > 1.5
        print(f"| `{name}` | {rule} | {expects:.2f} | {gains:.2f} | {'far' if far else ''} |", flush=True)


if __name__ == "__main__":
    main()
