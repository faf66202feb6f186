"""Loads hostile runs while an audit hook listens; `test_loading.py` runs it.

    python watched_loading.py GOOD_RUN ANOTHER_GOOD_RUN HOSTILE_RUN...

Prints one JSON object: what each verb made of each run, and every event by which code could have come in.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable
from os import fsdecode, fspath
from os.path import abspath
from pathlib import Path
from typing import Any

import hotloop
from hotloop.cli.main import main as hotloop_main
from hotloop.core.errors import HotloopError

WAYS_IN = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "subprocess.Popen",
    "pickle.find_class",
    "ctypes.dlopen",
    "socket.connect",
    "urllib.Request",
)


class Ear:
    """Listens once it is told where the hostile runs lie."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.heard: list[str] = []
        self.written: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in WAYS_IN:
            self.heard.append(f"{event} {str(arguments)[:120]}")
        elif event == "exec" and self.root in arguments[0].co_filename:
            self.heard.append(f"exec of {arguments[0].co_filename}")
        elif event == "compile" and self.root in str(arguments[1]):
            self.heard.append(f"compile of {arguments[1]}")
        elif event == "import" and str(arguments[0]).startswith("hostile"):
            self.heard.append(f"import of {arguments[0]}")
        elif event == "open" and not isinstance(arguments[0], int) and _writes(arguments):
            self.written.append(abspath(fsdecode(fspath(arguments[0]))))


def _writes(arguments: tuple[Any, ...]) -> bool:
    flags = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], int) else 0
    return bool(flags & 3)


def attempts(run_dir: str) -> dict[str, Callable[[], Any]]:
    """Every way to load a run, none of them trusting it."""
    return {
        "load": lambda: hotloop.load(run_dir),
        "resume": lambda: hotloop.resume(run_dir),
        "evaluate": lambda: hotloop.evaluate(run_dir, episodes=1),
        "hotloop evaluate": lambda: _verb("evaluate", run_dir, "--episodes", "1"),
        "hotloop watch": lambda: _verb("watch", run_dir, "--json"),
        "hotloop runs": lambda: _verb("runs", str(Path(run_dir).parent)),
    }


def _verb(*words: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        code = hotloop_main(list(words))
    if code != 0:
        raise HotloopError(said.getvalue().strip())


def _tried(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except HotloopError as error:
        return f"refused: {error}"
    except Exception as error:
        return f"RAISED {type(error).__name__}: {error}"
    return "done"


def main() -> None:
    good, other, *hostile = sys.argv[1:]
    first = {name: _tried(attempt) for name, attempt in attempts(good).items()}  # imports and kernels come in now
    for attempt in attempts(other).values():
        _tried(attempt)
    ear = Ear(str(Path(good).parent))
    sys.addaudithook(ear)
    answers = {Path(run).name: {name: _tried(attempt) for name, attempt in attempts(run).items()} for run in hostile}
    heard, written = list(ear.heard), list(ear.written)
    print(json.dumps({"good": first, "hostile": answers, "heard": heard, "written": written}))


if __name__ == "__main__":
    main()
