"""Runs every verb on mutants of small runs in one process and says what came out; `test_mutants.py` starts it.

    python fuzzed_verbs.py FOLDER FIRST COUNT

A fault is anything but an answer or a HotloopError: another exception, more than 20 seconds of processor time (or 120
by the clock), more than 400 MB beyond what the process had. Which mutant is being tried stands in FOLDER/now.txt,
should the process itself come to its end.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import hotloop
from hotloop.cli.main import main as hotloop_main
from hotloop.core.errors import HotloopError
from tests.reliability.killing import FAMILIES
from tests.reliability.mutants import Mutant

BASES = ("dqn-native", "ppo-native", "ppo-graphs", "dqn-snake", "dqn-sfc", "dqn-n-step")
SMALL = {"total_env_steps": 320, "log_every": 32, "checkpoint": {"every": 64}}
SMALL_EVALUATION = {"evaluation": {"every": 160, "episodes": 1, "final_episodes": 1, "max_episode_steps": 20}}
LIMIT_SECONDS, LONGEST_WAIT, LIMIT_BYTES, ROOM_BYTES = 20, 120, 400 * 2**20, 3 * 2**30
TRAINED_SECONDS = 3.0


class Hang(BaseException):
    """An alarm that nothing catches on the way."""


class Enough(BaseException):
    """A run that trains, and would go on doing so."""


class Patience:
    """A progress display that ends a run which takes long because it is told to."""

    def __init__(self) -> None:
        self._end = time.monotonic() + TRAINED_SECONDS

    def show(self, *_: Any) -> None:
        if time.monotonic() > self._end:
            raise Enough

    def say(self, text: str) -> None:
        pass


def families() -> dict[str, tuple[str, dict[str, Any]]]:
    dqn = FAMILIES["dqn-native"]
    known = {name: FAMILIES[name] for name in BASES if name in FAMILIES}
    known["dqn-n-step"] = (dqn[0], {**dqn[1], "n_step": 3, "replay": {"prioritized": True, "buffer_size": 100}})
    known["dqn-snake"] = (dqn[0], {**dqn[1], "env": {"id": "snake", "num_envs": 2, "options": {"board_size": 6}}})
    known["dqn-sfc"] = (dqn[0], {**dqn[1], "env": {"id": "sfc", "num_envs": 2, "dict_obs": "flatten"}})
    return {name: (preset, {**tree, **SMALL, **SMALL_EVALUATION}) for name, (preset, tree) in known.items()}


def make_bases(folder: Path) -> list[Path]:
    """Of each family a finished run, and one whose last stretch is still before it."""
    bases = []
    for name, (preset, tree) in families().items():
        whole = folder / "bases" / name
        tree = {**tree, "learning_starts": 64} if "ppo" not in preset else tree
        hotloop.train(hotloop.preset(preset, **{**tree, "run_dir": str(whole)}))
        stopped = shutil.copytree(whole, folder / "bases" / f"{name}-stopped")
        (stopped / "result.json").unlink()
        shutil.rmtree(sorted((stopped / "checkpoints").iterdir())[-1])
        bases += [whole, stopped, stopped]
    return bases


def attempts(
    run: Path, good: Path, out: Path, draw: random.Random, pictures: bool = True
) -> dict[str, Callable[[], Any]]:
    """A few of the verbs, the cheap one always."""
    path = str(run)
    ways: dict[str, Callable[[], Any]] = {
        "resume": lambda: hotloop.resume(path, progress=Patience()),
        "resume --accept-changes": lambda: hotloop.resume(path, progress=Patience(), accept_changes=True),
        "load": lambda: hotloop.load(path),
        "evaluate": lambda: verb("evaluate", path, "--episodes", "1", *draw.choice([(), ("--json",)])),
        "watch": lambda: verb("watch", path, *draw.choice([(), ("--json",)])),
        "report": lambda: verb("report", path, "--no-frames", "--html", str(out / "page.html"), "--json"),
        "export": lambda: verb("export", path, "--torch", str(out / "agent.safetensors")),
        "log": lambda: verb("log", path, "--tensorboard", str(out / "board"), "--json"),
        "compare": lambda: verb("compare", f"one={run}", f"other={good}", "--quiet", "--out", str(out / "compare")),
        "debug-nan": lambda: verb("debug-nan", path),
        "result": lambda: verb("resume", path, "--quiet") if (run / "result.json").exists() else None,
    }
    dear = {name: draw.random() < 0.1 for name in ("compare", "watch")}  # a quarter of a second each
    chosen = draw.sample([name for name in ways if dear.get(name, True)], 3)
    if draw.random() < 0.02 and pictures:
        ways["report with frames"] = lambda: verb("report", path, "--html", str(out / "page.html"))
        chosen.append("report with frames")
    if draw.random() < 0.01:
        ways["export onnx"] = lambda: verb("export", path, "--onnx", str(out / "agent.onnx"))
        chosen.append("export onnx")
    return {"runs": lambda: verb("runs", str(run.parent), *draw.choice([(), ("--json",)]))} | {
        name: ways[name] for name in chosen
    }


def verb(*words: str) -> None:
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # as strict as a terminal or a file
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        hotloop_main(list(words))
        said.flush()


def peak_bytes() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024


def tried(attempt: Callable[[], Any]) -> str:
    """Empty where all is well, else what was not."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of now
    before = peak_bytes()
    signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS)
    signal.alarm(LONGEST_WAIT)
    try:
        attempt()
    except (HotloopError, SystemExit, Enough):
        pass
    except Hang:
        return "HANG " + "".join(traceback.format_exc(limit=-4))
    except BaseException:
        return "RAISED " + traceback.format_exc(limit=-8)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    grown = peak_bytes() - before
    return f"ALLOCATED {grown / 2**20:.0f} MB" if grown > LIMIT_BYTES else ""


def rang(*_: Any) -> None:
    raise Hang


def main() -> None:
    folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    os.fsync = lambda descriptor: None  # power cuts are for other tests, and waiting for a disk is most of the time
    faulthandler.enable(open(folder / "crash.txt", "w"))  # noqa: SIM115
    warnings.simplefilter("ignore")
    bases = make_bases(folder)
    good = folder / "bases" / "dqn-native"
    signal.signal(signal.SIGALRM, rang)
    signal.signal(signal.SIGPROF, rang)
    for name in {path for path in bases if path.name.endswith("-stopped")}:  # kernels and imports come in now
        run = shutil.copytree(name, folder / "warm" / name.name)
        for attempt in attempts(run, good, folder / "warm", random.Random(0)).values():
            tried(attempt)
        tried(lambda run=run: hotloop.resume(run))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM_BYTES, size + ROOM_BYTES))
    faults, seen = [], Counter[str]()
    for number in range(first, first + count):
        if number % 1_000 == 0:
            print(f"{number - first} mutants, {len(faults)} faults", file=sys.stderr, flush=True)
        draw = random.Random(f"verbs {number}")
        base = draw.choice(bases)
        place = folder / "work"
        run = shutil.copytree(base, place / "runs" / "run", symlinks=True)
        mutant = Mutant(run, number)
        (folder / "now.txt").write_text(f"{number} {base.name}: {'; '.join(mutant.done)}")
        for name, attempt in attempts(run, good, place, draw, "sfc" not in base.name).items():
            seen[name] += 1
            if fault := tried(attempt):
                faults.append(f"{number} {base.name} {name}: {'; '.join(mutant.done)}\n{fault}")
                (folder / "faults.txt").write_text("\n\n".join(faults))
        shutil.rmtree(place)
    (folder / "now.txt").write_text("")
    print(json.dumps({"mutants": count, "faults": faults, "verbs": dict(seen)}))


if __name__ == "__main__":
    main()
