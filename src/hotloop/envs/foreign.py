"""Blaming the right env: every mistake of an env we did not write becomes one error that names env, index and field.

Whatever way out of its code an env takes (an exception of any kind, `sys.exit`, a fork that returns twice) ends here.

Where a Gymnasium env says which actions are allowed: `info["action_mask"]`, or a method `action_masks()`.

Which actions an algorithm can take.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import sysconfig
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotloop.core.errors import EnvError, HotloopError
from hotloop.core.interrupts import is_from_outside
from hotloop.core.types import (
    ActionSpec,
    Array,
    BoxActions,
    DiscreteActions,
    GraphActionSpec,
    HybridActions,
    NodeActions,
)

if TYPE_CHECKING:
    import gymnasium

LARGEST_REWARD = float(np.finfo(np.float32).max)
BOOLEANS: frozenset[Any] = frozenset({bool, np.bool_})
HINT = "mend the line named last"
MOST_FRAMES, LONGEST_TEXT, LONGEST_ACTION = 8, 500, 80
_OURS = str(Path(__file__).parents[1]) + os.sep
MADV_WIPEONFORK = 18
_told = mmap.mmap(-1, 1)
"""Whether anything was said about forked processes: shared with them, so that of thousands one does."""
_LIBRARIES = (sysconfig.get_paths()["stdlib"] + os.sep, "<frozen ")


class BadValueError(Exception):
    """What is wrong with one value, before it is known which env it came from."""


@dataclass(slots=True)
class Witness:
    """Knows which env is being stepped and how often it was; turns complaints into errors."""

    env_id: str
    steps: int = 0
    hint: str = ""
    process: Process = field(default_factory=lambda: Process())

    def error(self, index: int | None, complaint: str, details: str = "", hint: str = "") -> EnvError:
        who = f"`{self.env_id}` env {index}" if index is not None else f"`{self.env_id}` (all envs)"
        when = f"after {self.steps} steps of each env" if self.steps else "before its first step"
        hint = hint or self.hint or f"run `hotloop envs check {self.env_id}` for the whole contract"
        return EnvError(f"{who} {complaint}, {when}{details}", hint)

    def raised(self, index: int | None, method: str, error: BaseException, action: Any = None) -> EnvError:
        """For `raise ... from error`. A Ctrl-C is raised again; a process that the env forked ends here."""
        self.process.require_own(self.env_id, error)
        if is_from_outside(error):
            raise error
        given = "" if action is None else f", given action {_short(action)}"
        return self.error(index, f"{_what(error)} in `{method}`{_text_of(error)}", given + user_frames(error), HINT)

    def refused(self, index: int, method: str, error: BaseException, complain: Callable[[], str]) -> EnvError:
        """An answer of `method` that could not be taken; looking at it, once more to say why, runs code of its own."""
        if not isinstance(error, Exception):
            return self.raised(index, method, error)
        try:
            return self.error(index, printable(complain()))
        except BaseException as second:
            return self.raised(index, method, second)


class Process:
    """The one that makes envs. A child that an env forks and that comes back from its code would go on as a second
    trainer in the same run: it is ended before it touches anything."""

    def __init__(self) -> None:
        self.own = _page_wiped_on_fork()
        """Its first byte is 0 in a forked child: asked at every step, where a system call would cost too much."""
        _processes.add(self)

    def require_own(self, env_id: str, error: BaseException | None = None) -> None:
        if self.own[0]:
            return
        if isinstance(error, SystemExit):  # as a forked process should leave
            os._exit(error.code if isinstance(error.code, int) else int(error.code is not None))
        if not _told[0]:
            _told[0] = 1
            came = f"{_what(error)}{_text_of(error)}" if error else "came back from the env's code"
            text = f"`{env_id}`: a process that the env forked {came}; it was ended, the run goes on without it\n"
            os.write(2, text.encode(errors="replace"))
        os._exit(1)


_processes: weakref.WeakSet[Process] = weakref.WeakSet()


def _page_wiped_on_fork() -> Any:
    """The kernel wipes it (Linux, also where C code forks); elsewhere `os.fork` does, below."""
    page: Any = bytearray(1)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            mapped = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            mapped.madvise(MADV_WIPEONFORK)
            page = mapped
    page[0] = 1
    return page


def _wipe_pages() -> None:
    for process in list(_processes):
        process.own[0] = 0


os.register_at_fork(after_in_child=_wipe_pages)


@contextlib.contextmanager
def env_code(env_id: str, doing: str, hint: str) -> Iterator[None]:
    """Code of the env's that is no method of a made env: its import, its constructor."""
    process = Process()
    try:
        yield
    except BaseException as error:
        process.require_own(env_id, error)
        if isinstance(error, HotloopError) or is_from_outside(error):
            raise
        what = _what(error) if isinstance(error, SystemExit) else f"{type(error).__name__}: {_read(error)}"
        raise EnvError(f"`{env_id}` {doing}: {what}{user_frames(error)}", hint) from error
    process.require_own(env_id)


def close_all(env_id: str, envs: Iterable[Any]) -> None:
    """An env that cannot even close must not hide why we are closing, or what the run came to."""
    process = Process()
    for env in envs:
        try:
            env.close()
        except BaseException as error:
            process.require_own(env_id, error)
            if is_from_outside(error):
                raise
        process.require_own(env_id)


def user_frames(error: BaseException) -> str:
    """Where an exception went through the user's own files, a line for each, and where in a library it was raised.

    Frames of ours and of libraries around the env (wrappers) are left out; where there are no others, the last three.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_OURS)]
    shown = [frame for frame in frames if not _is_library(frame.filename)]
    if not shown:
        shown = frames[-3:]
    elif shown[-1] is not frames[-1]:
        shown.append(frames[-1])
    lines = [f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}" for frame in shown]
    if len(lines) > MOST_FRAMES:
        half = MOST_FRAMES // 2
        lines[half:-half] = [f"... {len(lines) - MOST_FRAMES} more ..."]
    return "".join(f"\n    {printable(line)}" for line in lines)


def printable(text: str) -> str:
    """With everything that could move a cursor or begin another line shown as what it is."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _is_library(filename: str) -> bool:
    return filename.startswith(_LIBRARIES) or "site-packages" in filename or "dist-packages" in filename


def _what(error: BaseException) -> str:
    if not isinstance(error, SystemExit):
        return f"raised {type(error).__name__}"
    return f"tried to end the program with exit code {0 if error.code is None else _read(error.code)}"


def _text_of(error: BaseException) -> str:
    """What an exception says, in brackets."""
    text = "" if isinstance(error, SystemExit) else _read(error)
    return f" ({text})" if text else ""


def _read(value: Any) -> str:
    """Its text, on one line; `__str__` is code of the env's too."""
    try:
        text = printable(str(value))
    except BaseException as error:
        if is_from_outside(error):
            raise
        return "its text cannot be read"
    return f"{text[:LONGEST_TEXT]}..." if len(text) > LONGEST_TEXT else text


def _short(action: Any) -> str:
    if isinstance(action, tuple):  # choices and numbers
        return f"({', '.join(map(_short, action))})"
    text = " ".join(np.array2string(np.asarray(action), threshold=20, precision=6).split())
    return text if len(text) <= LONGEST_ACTION else f"{text[:LONGEST_ACTION]}..."


def complain_about_step(answer: Any, encoder: Any) -> str:
    """Which of the five values of a refused `step` answer was wrong, and how."""
    expected = "(observation, reward, terminated, truncated, info)"
    if not isinstance(answer, tuple) or len(answer) != 5:
        given = f"{len(answer)} values" if isinstance(answer, tuple) else f"a {type(answer).__name__}"
        return f"returned {given} from `step` where {expected} was expected"
    obs, reward, terminated, truncated, info = answer
    if complaint := complain_about_obs(obs, encoder):
        return complaint
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if flag.__class__ not in BOOLEANS:
            return f"returned `{name}` {flag!r} of type {type(flag).__name__} where a bool was expected"
    if not isinstance(info, dict):
        return f"returned `info` of type {type(info).__name__} where a dict was expected"
    return f"returned `reward` {reward!r} where a finite number was expected"


def complain_about_obs(obs: Any, encoder: Any) -> str:
    try:
        encoder.write(encoder.empty(1), 0, obs)
    except Exception as error:
        return f"returned `obs` {error}"
    return ""


def unpack_reset(answer: Any) -> tuple[Any, dict[str, Any]]:
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], dict):
        raise BadValueError("returned something other than (observation, info) from `reset`")
    return answer


MASK_KEY = "action_mask"


class MaskReader:
    """Reads the masks of single envs; `present` is False where they offer none."""

    def __init__(self, envs: list[gymnasium.Env], num_actions: int, first_infos: list[dict[str, Any]]) -> None:
        self._num_actions = num_actions
        self._in_info = all(MASK_KEY in info for info in first_infos)
        self._methods: list[Callable[[], Any]] = []
        if not self._in_info and all(env.has_wrapper_attr("action_masks") for env in envs):
            self._methods = [env.get_wrapper_attr("action_masks") for env in envs]
        self.present = self._in_info or bool(self._methods)

    def read(self, index: int, info: dict[str, Any], terminated: bool) -> Array:
        raw = info.get(MASK_KEY) if self._in_info else self._methods[index]()
        return checked_mask(raw, self._num_actions, terminated)


LATE_MASK = "returned `action_mask` in `info`, which the first `reset` of each env did not"
LATE_MASK_HINT = "put it into the `info` of `reset` too: the first action is chosen by it; or leave it out of both"


def checked_mask(raw: Any, num_actions: int, terminated: bool) -> Array:
    """A mask [A] bool with at least one True.

    After termination no action follows, so many envs give none or an empty one; all True there keeps a masked
    maximum finite.
    """
    mask = None if raw is None else np.asarray(raw)
    if terminated and (mask is None or not mask.any()):
        return np.ones(num_actions, np.bool_)
    if mask is None:
        raise BadValueError("returned no `action_mask` although it did at its first reset")
    if mask.shape != (num_actions,) or mask.dtype.kind not in "biu":
        raise BadValueError(f"returned `action_mask` {mask.dtype}{mask.shape} where bool({num_actions},) was expected")
    if not mask.any():
        raise BadValueError("returned an `action_mask` that allows no action")
    return mask.astype(np.bool_)


OWN_CLASS_HINT = "write a class that wraps the env in `gymnasium.wrappers.{}` and pass it as `path/to/file.py:Class`"


def require_bounded(env_id: str, actions: ActionSpec | GraphActionSpec) -> BoxActions:
    """The actions of an env that SAC can train on, or an error that says what it needs."""
    if not isinstance(actions, BoxActions) or actions.masked:
        raise EnvError(
            f"`{env_id}` has actions that are not numbers alone; SAC needs a Box of them",
            "train with DQN where actions are one choice, with PPO otherwise",
        )
    if not np.isfinite([*actions.low, *actions.high]).all():
        raise EnvError(
            f"`{env_id}` has actions between {list(actions.low)} and {list(actions.high)}; SAC needs bounds",
            OWN_CLASS_HINT.format("RescaleAction") + ", which gives them bounds; or train with PPO",
        )
    return actions


def require_discrete(env_id: str, actions: ActionSpec | GraphActionSpec) -> DiscreteActions:
    """The actions of an env that DQN can train on, or an error that says how to make it one."""
    if isinstance(actions, DiscreteActions):
        return actions
    if isinstance(actions, NodeActions):
        raise EnvError(f"`{env_id}` wants a choice for each node of a graph; DQN needs Discrete actions", "use PPO")
    if isinstance(actions, BoxActions):
        kind = f"Box of shape {actions.shape}, which is continuous"
    elif isinstance(actions, HybridActions):
        kind = "of choices and numbers, which is partly continuous"
    else:
        kind = f"MultiDiscrete({list(actions.counts)}), which is not one choice among a few"
    raise EnvError(
        f"`{env_id}` has action space {kind}; DQN needs Discrete actions",
        OWN_CLASS_HINT.format("TransformAction") + ", mapping each of a few numbers to an action; or train with PPO",
    )
