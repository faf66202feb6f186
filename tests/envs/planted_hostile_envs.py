"""Envs that leave, print, hang, fork or break in ways of their own: what an env does must never end as success."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

AT = 150
"""The step at which each gets into trouble, counted over its episodes: in the middle of a short run."""


class Hostile(gymnasium.Env):
    """Episodes of ten steps; `trouble` comes at step `at` of an env's life."""

    observation_space: spaces.Space = spaces.Box(-10.0, 10.0, (2,), np.float32)
    action_space: spaces.Space = spaces.Discrete(2)

    def __init__(self, at: int = AT, code: int = 0, folder: str = "") -> None:
        self.at, self.code, self.folder = at, code, Path(folder)
        self.life = 0

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.life += 1
        if self.life == self.at:
            self.trouble()
        return np.full(2, self.life % 10, np.float32), 1.0, self.life % 10 == 0, False, {}

    def trouble(self) -> None:
        raise NotImplementedError


class Exits(Hostile):
    def trouble(self) -> None:
        sys.exit(self.code)


class ExitsUnderneath(Hostile):
    def trouble(self) -> None:
        os._exit(self.code)


class ClosesFiles(Hostile):
    def trouble(self) -> None:
        os.closerange(3, 500)


class ExitsInThread(Hostile):
    """The interpreter cannot raise anything in the main thread then: the process is gone at once."""

    def trouble(self) -> None:
        thread = threading.Thread(target=lambda: os._exit(self.code))
        thread.start()
        thread.join()


class ExitsInC(Hostile):
    """Of which Python is told nothing."""

    def trouble(self) -> None:
        ctypes.CDLL(None)._exit(self.code)


class Interrupts(Hostile):
    def trouble(self) -> None:
        raise KeyboardInterrupt


class EndsGenerator(Hostile):
    def trouble(self) -> None:
        raise GeneratorExit


class Cancels(Hostile):
    def trouble(self) -> None:
        raise asyncio.CancelledError("not now")


class ExitsInReset(Hostile):
    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        if self.life:
            sys.exit(self.code)
        return super().reset(seed=seed)


class ExitsMade(Hostile):
    def __init__(self) -> None:
        sys.exit(0)


class ExitsClosing(Hostile):
    def trouble(self) -> None:
        pass

    def close(self) -> None:
        sys.exit(self.code)


class ExitsAsArray(Hostile):
    """Its observation leaves when somebody looks at it."""

    class Obs:
        def __array__(self, *_: Any, **__: Any) -> Any:
            sys.exit(0)

    def step(self, action: Any) -> Any:
        _, *rest = super().step(action)
        return self.Obs(), *rest

    def trouble(self) -> None:
        pass


class Forks(Hostile):
    """Returns in both processes; notes the number of the child."""

    def trouble(self) -> None:
        child = os.fork()
        if child:
            (self.folder / f"child-{child}").touch()


class ForksBelow(Hostile):
    """The same past Python's own `os.fork`."""

    def trouble(self) -> None:
        child = ctypes.CDLL(None).fork()
        if child:
            (self.folder / f"child-{child}").touch()


class ForksClosing(Forks):
    def trouble(self) -> None:
        pass

    def close(self) -> None:
        super().trouble()


class ForksAndExits(Hostile):
    """What is right to do: the child leaves."""

    def trouble(self) -> None:
        child = os.fork()
        if not child:
            sys.exit(5)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
        (self.folder / f"child-{child}").touch()


class HangsBusy(Hostile):
    def trouble(self) -> None:
        print("hanging", file=sys.stderr, flush=True)
        while True:
            pass


class HangsSleeping(Hostile):
    def trouble(self) -> None:
        print("hanging", file=sys.stderr, flush=True)
        while True:
            time.sleep(3600)


class HangsOnLock(Hostile):
    def trouble(self) -> None:
        print("hanging", file=sys.stderr, flush=True)
        lock = threading.Lock()
        lock.acquire()
        while True:
            lock.acquire()


class HangsInC(Hostile):
    """C code that does not let go of the interpreter: no line of Python runs in this process any more."""

    def trouble(self) -> None:
        print("hanging", file=sys.stderr, flush=True)
        while True:
            ctypes.PyDLL(None).sleep(3600)


class HangsClosing(Hostile):
    def trouble(self) -> None:
        print("hanging", file=sys.stderr, flush=True)
        time.sleep(0.5)

    def close(self) -> None:
        while True:
            time.sleep(3600)


class Prints(Hostile):
    """On every way to stdout, at every moment; and warns at every step, as a physics engine does."""

    def __init__(self, at_exit: bool = False) -> None:
        super().__init__(-1)
        print("a constructor prints")
        if at_exit:
            atexit.register(print, "the end prints")

    def step(self, action: Any) -> Any:
        warnings.warn("the simulation is unstable", stacklevel=1)
        if self.life == 3:
            print("python prints")
            sys.__stdout__.write("the first stdout prints\n")  # type: ignore[union-attr]
            os.write(1, b"the descriptor prints\n")
            ctypes.CDLL(None).puts(b"C prints")
        return super().step(action)

    def close(self) -> None:
        print("close prints")


class Raises(Hostile):
    """Three calls deep, with an escape sequence in what it says."""

    def trouble(self) -> None:
        self.compute_reward(0)

    def compute_reward(self, divisor: int) -> float:
        return 1 / divisor


class RaisesEscapes(Hostile):
    def trouble(self) -> None:
        raise RuntimeError("\x1b[2J\x1b]0;owned\x07 gone\nerror: a second line")


class RaisesUnspeakable(Hostile):
    """An exception whose text cannot be had."""

    class Unspeakable(Exception):
        def __str__(self) -> str:  # noqa: PLE0307
            sys.exit(0)

    def trouble(self) -> None:
        raise self.Unspeakable


class RaisesDeep(Hostile):
    def trouble(self) -> None:
        self.trouble()
