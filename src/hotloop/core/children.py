"""Starts processes of our own interpreter: what lies in the current folder is not on their path.

`python -m` and `python -c` put the current folder first on `sys.path`, where a file `json.py` in a run that somebody
sent would be imported instead of Python's own. So no other file of ours starts our interpreter. This one is also the
program that such a process begins with; until it has set the path it imports only what Python has loaded by then.
"""

import os
import sys

PROGRAM = os.path.abspath(__file__)
HOTLOOP = "hotloop.cli.main"
"""What a process that runs a verb begins with."""
FOLDER_OF_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(PROGRAM)))


def own_child(module: str, *words: str) -> tuple[str, ...]:
    """The command of a process that calls `main()` of a module of ours, which finds `words` in `sys.argv[1:]`; it
    imports from where this process does."""
    path = safe_path(sys.path)
    return (sys.executable, "-P", PROGRAM, module, *words, *path, str(len(path)))


def own_program(file: str, *words: str) -> tuple[str, ...]:
    """The command that runs a file of ours which needs nothing but the standard library, and starts quickly."""
    return (sys.executable, "-I", "-S", os.path.abspath(file), *words)


def safe_path(path: list[str]) -> list[str]:
    """The same folders in the same order, ours among them; those that follow the current one about hide nothing any
    more: they come last."""
    kept = steady_path(path)
    last = [place for entry in path if entry not in kept for place in _whole(entry)]
    return list(dict.fromkeys([*kept, FOLDER_OF_PACKAGE, *last]))


def steady_path(path: list[str]) -> list[str]:
    """Without the folders that follow the current one about: an empty or relative entry, also of PYTHONPATH, which
    Python makes absolute."""
    named = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not os.path.isabs(entry)]
    moved = {place for entry in named if os.environ.get("PYTHONPATH") for place in _whole(entry)}
    return [entry for entry in path if os.path.isabs(entry) and entry not in moved]


def _whole(entry: str) -> list[str]:
    """Nothing where the current folder is gone."""
    try:
        return [os.path.abspath(entry)]
    except OSError:
        return []


def leave_out_current_folder() -> None:
    """Where `python -m` has put it."""
    if not sys.flags.safe_path and sys.path[:1] in ([""], *([place] for place in _whole(""))):
        del sys.path[0]


def main() -> None:
    """What a process begins with: its module, its words, the path and how many entries that has."""
    count = int(sys.argv.pop())
    sys.path[:] = sys.argv[-count:]
    sys.argv[:] = sys.argv[1:-count]
    from importlib import import_module

    raise SystemExit(import_module(sys.argv[0]).main())


if __name__ == "__main__":
    main()
