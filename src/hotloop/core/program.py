"""The program around a verb: what an env prints, warns of or tries to end there does not reach the answer."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Any, NoReturn, TextIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from hotloop.core.verdicts import ExitCode

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What libraries of linear algebra take their number of threads from, as they are loaded."""
STDOUT, STDERR = 1, 2
_undo = contextlib.ExitStack()
_answers: TextIO | None = None
_debugging = _running = False
_asked_for_json: bool | None = None
"""None until a verb has read its words."""


def answers() -> TextIO:
    """Where the answer of a verb goes: stdout, also while an env's prints are kept away from it."""
    return sys.stdout if _answers is None else _answers


def is_debugging() -> bool:
    return _debugging


def wants_json(words: Sequence[str]) -> bool:
    """Whether `--json` was asked for: as the verb read its words, or as they stand where it could not read them."""
    return "--json" in words if _asked_for_json is None else _asked_for_json


def take_options(json: bool, debug: bool) -> None:
    """`--json` and `--debug`, which every verb has; nothing is changed for a verb that is called outside `program`."""
    global _debugging, _asked_for_json
    if not _running:
        return
    _debugging, _asked_for_json = _debugging or debug, bool(_asked_for_json) or json
    if json and _answers is None and sys.stdout is not None:
        _keep_stdout_for_the_answer()


def _keep_stdout_for_the_answer() -> None:
    """From here on, what is printed goes to stderr: by Python, by C code, by processes that are started.

    Until the program ends, since envs print in `close`, in finalizers and at exit too.
    """
    global _answers
    _answers = sys.stdout
    _undo.callback(setattr, sys, "stdout", sys.stdout)
    if _descriptor_of(sys.stdout) == STDOUT:
        sys.stdout.flush()
        _answers = open(os.dup(STDOUT), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)  # noqa: SIM115
        _undo.callback(_answers.close)
    sys.stdout = sys.stderr
    with contextlib.suppress(OSError):  # there is no stdout, or no stderr
        there = os.dup(STDOUT)
        _undo.callback(os.close, there)
        _undo.callback(os.dup2, there, STDOUT)
        os.dup2(STDERR, STDOUT)


@contextlib.contextmanager
def program(whole: bool) -> Iterator[None]:
    """What holds while a verb runs; `whole` if the process ends with it, else all is given back."""
    global _answers, _debugging, _running, _asked_for_json
    _running = True
    show, leave = warnings.showwarning, os._exit
    _show_warnings_once()
    if whole:
        _refuse_exits()
    try:
        yield
    finally:
        if _answers is not None:
            with contextlib.suppress(OSError):  # told where the answer was written
                _answers.flush()
        if not whole:
            _undo.close()
            _answers, warnings.showwarning, os._exit = None, show, leave
            _debugging = _running = False
            _asked_for_json = None


def use_one_thread() -> None:
    """For a verb that times: libraries loaded from here on make no threads, unless the user has said otherwise."""
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")


def load_average() -> list[float]:
    """Of the machine, over 1, 5 and 15 minutes: what figures measured now are worth. Empty where nobody knows."""
    return [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else []


def _show_warnings_once() -> None:
    """Each with its own text once; envs are made anew again and again, and Python would show theirs every time."""
    show, shown = warnings.showwarning, set[tuple[str, type[Warning]]]()

    def show_once(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
        if (str(message), category) not in shown:
            shown.add((str(message), category))
            show(message, category, *rest, **more)

    warnings.showwarning = show_once


def _refuse_exits() -> None:
    """`os._exit` would end a run without a word and with any exit code; in this process it is taken for `sys.exit`.

    In a thread, where that would end the thread alone, it ends the program, as an error that says where. Other
    processes that were forked leave as they please.
    """
    from hotloop.core.terminal import say  # which asks us where answers go

    leave, own = os._exit, os.getpid()

    def exit_or_raise(status: int) -> NoReturn:
        if os.getpid() != own:
            leave(status)
        if threading.current_thread() is threading.main_thread():
            raise SystemExit(status)
        caller = sys._getframe(1)
        where = f"{caller.f_code.co_filename}:{caller.f_lineno} in {caller.f_code.co_name}"
        say(f"error: a thread tried to end the program with exit code {status}, which ends it: {where}")
        say("\nhint: nothing is finished; mend that line, and `hotloop resume RUN` continues a run")
        leave(ExitCode.MISTAKE)

    os._exit = exit_or_raise


def _descriptor_of(stream: Any) -> int | None:
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError):  # a capture, or closed
        return None


def hotloop_version() -> str:
    """Recorded beside the schema, so that a refusal can name the version that would read the file."""
    try:
        return version("hotloop")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


def install_command(extra: str) -> str:
    """The line that adds one of our extras to this very installation: from the folder, file or address that it came
    from, as the installer has noted it (PEP 610), since no package index may have us."""
    name = f"hotloop[{extra}]"
    try:
        source = json.loads(distribution("hotloop").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError, OSError):
        source = {}
    url = source.get("url", "")
    if not url.startswith("file://"):
        wanted = f"{name} @ {source['vcs_info']['vcs']}+{url}" if "vcs_info" in source else name
        return f"pip install '{wanted}'"
    editable = "-e " if source.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{url2pathname(urlsplit(url).path)}[{extra}]'"


RECKONING = ("numpy", "numba", "llvmlite", "torch")
"""Packages that decide how a run rounds."""


def versions() -> dict[str, str]:
    """Of Python, hotloop and what it reckons with; nothing of it is imported."""
    found = {"python": platform.python_version(), "hotloop": hotloop_version()}
    for name in RECKONING:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
