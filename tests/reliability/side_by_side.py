"""The same kills, damage and hostile files for hotloop and for Stable-Baselines3; prints one JSON object.

    python tests/reliability/side_by_side.py hotloop
    python tests/reliability/side_by_side.py stable_baselines3      # in an environment that has it

Each library comes with a file of its own, `side_LIBRARY.py`, that says how it trains, continues and loads.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ALGORITHMS = ("dqn", "ppo")
MEMORY = 12 * 2**30
"""Address space for whoever loads damaged files: what these ask for must not take the machine down."""


def child(library: str, task: str, *words: str) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), library, "--task", task, *words]


def run(library: str, task: str, *words: str) -> tuple[int, str]:
    """A task in a process of its own: its exit code and the last line of what it said."""
    done = subprocess.run(child(library, task, *words), capture_output=True, text=True)
    said = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return done.returncode, said[-1] if said else ""


def kill_at(library: str, algorithm: str, folder: Path, checkpoints: int, delay: float) -> bool:
    """SIGKILL a training process some time after it has written so many checkpoints; False where it was too fast."""
    side = importlib.import_module(f"side_{library}")
    process = subprocess.Popen(child(library, "train", algorithm, str(folder)), stderr=subprocess.DEVNULL)
    while process.poll() is None and side.count(folder) < checkpoints:
        time.sleep(0.002)
    time.sleep(delay)
    process.kill()
    return process.wait() == -signal.SIGKILL


def killed_runs(library: str, algorithm: str, work: Path, kills: int) -> dict[str, Any]:
    """Uninterrupted twice, then killed and continued: how often the parameters end the same."""
    draw = random.Random(algorithm)
    ends = [run(library, "train", algorithm, str(work / f"{algorithm}-whole{index}"))[1] for index in range(2)]
    equal, ended = 0, []
    for number in range(kills):
        folder = work / f"{algorithm}-killed{number}"
        if not kill_at(library, algorithm, folder, 2 + number % 3, draw.uniform(0.0, 0.2)):
            continue
        code, end = run(library, "train", algorithm, str(folder))
        ended.append("continued" if code == 0 else end)
        equal += code == 0 and end == ends[0]
    return {
        "same seed twice, same parameters": ends[0] == ends[1],
        "kills": len(ended),
        "continued": dict(Counter(ended)),
        "equal to the uninterrupted run": equal,
    }


def killed_in_save(library: str, algorithm: str, work: Path) -> dict[str, Any]:
    """Killed in the middle of writing the third checkpoint: what the newest one is worth, and what continues."""
    folder = work / f"{algorithm}-save"
    code, _ = run(library, "train", algorithm, str(folder), "--die-in-save", "3")
    loaded = run(library, "load", algorithm, str(folder))
    continued = run(library, "train", algorithm, str(folder))
    whole = run(library, "load", algorithm, str(work / f"{algorithm}-whole0"))[1]
    again = run(library, "load", algorithm, str(folder))[1] if continued[0] == 0 else ""
    return {
        "killed": code == -signal.SIGKILL,
        "load the newest": "loads" if loaded[0] == 0 else loaded[1],
        "continue": "continues" if continued[0] == 0 else continued[1],
        "ends equal": continued[0] == 0 and again == whole,
    }


def damage(library: str, algorithm: str, folder: Path, trials: int) -> dict[str, Any]:
    """Cut off and flip the files of the newest checkpoint, one at a time, and load it; runs in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    side = importlib.import_module(f"side_{library}")
    good = side.load(algorithm, folder)[0]
    found: dict[str, Any] = {}
    for path in side.files(algorithm, folder):
        draw = random.Random(path.name)
        content = path.read_bytes()
        for kind in ("cut off", "one bit flipped"):
            seen: Counter[str] = Counter()
            for _ in range(trials):
                at = draw.randrange(len(content))
                bad = content[:at] if kind == "cut off" else _flipped(content, at, draw.randrange(8))
                path.write_bytes(bad)
                seen[_loaded(side, algorithm, folder, good)] += 1
            found[f"{side.kind_of(path)}, {kind}"] = dict(seen.most_common())
        path.write_bytes(content)
    return found


def _flipped(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


def _loaded(side: Any, algorithm: str, folder: Path, good: str) -> str:
    try:
        got, note = side.load(algorithm, folder)
    except BaseException as error:
        return f"refused ({type(error).__name__})" if side.is_own(error) else f"raised {type(error).__name__}"
    if note:
        return note
    return "loaded, content as saved" if got == good else "LOADED, CONTENT CHANGED, nothing said"


def hostile(library: str, work: Path) -> dict[str, Any]:
    """Files that run a command when something unpickles or imports them; the command makes a file."""
    side = importlib.import_module(f"side_{library}")
    found = {}
    for name, plant in side.HOSTILE.items():
        folder, marker = work / f"hostile-{name}", work / f"ran-{name}"
        shutil.copytree(work / "dqn-whole0", folder)
        plant(folder, marker)
        code, said = run(library, "load", "dqn", str(folder))
        how = "loaded" if code == 0 else f"refused: {said[:90]}"
        found[name] = f"{'CODE RAN' if marker.exists() else 'nothing ran'}; {how}"
    return found


def fsyncs(library: str, work: Path) -> Any:
    """How many fsync calls a whole run with its checkpoints makes, counted by the kernel's tracer."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    log = work / "strace.txt"
    words = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(log)]
    subprocess.run([*words, *child(library, "train", "dqn", str(work / "traced"))], check=True, capture_output=True)
    return sum("sync(" in line for line in log.read_text().splitlines())


def all_trials(library: str, work: Path, kills: int, trials: int) -> dict[str, Any]:
    side = importlib.import_module(f"side_{library}")
    report: dict[str, Any] = {"versions": {"python": platform.python_version(), **side.versions()}}
    for algorithm in ALGORITHMS:
        report[f"{algorithm}: killed at random moments"] = killed_runs(library, algorithm, work, kills)
        report[f"{algorithm}: killed while saving"] = killed_in_save(library, algorithm, work)
        copy = shutil.copytree(work / f"{algorithm}-whole0", work / f"{algorithm}-damaged")
        code, said = run(library, "damage", algorithm, str(copy), "--trials", str(trials))
        report[f"{algorithm}: damaged files"] = json.loads(said) if code == 0 else said
    report["hostile files"] = hostile(library, work)
    report["fsync calls in a run"] = fsyncs(library, work)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=["hotloop", "stable_baselines3"])
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--kills", type=int, default=5, help="kills for each algorithm")
    parser.add_argument("--trials", type=int, default=100, help="cuts and flips for each kind of file")
    parser.add_argument("--task", choices=["train", "load", "damage"], help=argparse.SUPPRESS)
    parser.add_argument("--die-in-save", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_intermixed_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, str(Path(__file__).parent))
    if arguments.task is None:
        with tempfile.TemporaryDirectory() as work:
            print(json.dumps(all_trials(arguments.library, Path(work), arguments.kills, arguments.trials), indent=2))
        return
    algorithm, folder = arguments.words[0], Path(arguments.words[1])
    side = importlib.import_module(f"side_{arguments.library}")
    if arguments.task == "train":
        print(side.train(algorithm, folder, arguments.die_in_save))
    elif arguments.task == "load":
        print(side.load(algorithm, folder)[0])
    else:
        print(json.dumps(damage(arguments.library, algorithm, folder, arguments.trials)))


if __name__ == "__main__":
    main()
