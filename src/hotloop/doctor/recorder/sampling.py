"""Where the loop stands, looked at every few milliseconds; each look is charged the time since the one before.

The alarm signal is used where there is one: its handler runs in the main thread at the next call boundary, on the very
line that was running. A thread that asks for the interpreter lock instead gets it when the script lets go of it, which
PyTorch does within every operator: it would see operators only, never the Python between them.
"""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hotloop.doctor
from hotloop.doctor.recorder.watch import Watch

Stack = tuple[tuple[CodeType, int], ...]
"""Code and instruction of each frame, innermost first; lines are looked up at the end, since that takes longer."""
DEEPEST = 120


class Sampler:
    """Takes the looks and charges each to the phase that runs."""

    def __init__(self, watch: Watch, interval: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self.watch, self.interval, self.clock = watch, interval, clock
        self.charged: dict[tuple[str, Stack], float] = {}
        self.looks = 0
        self.cost = 0.0
        """Seconds spent looking."""
        self.by_signal = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        self.displaced = False
        """Whether the script took the alarm signal for itself."""
        self.fresh: deque[tuple[float, float, Stack]] = deque()
        self._last = clock()
        self._running = False

    def start(self) -> None:
        self._running, self._last = True, self.clock()
        if self.by_signal:
            signal.signal(signal.SIGALRM, self._alarm)
            signal.siginterrupt(signal.SIGALRM, False)
            signal.setitimer(signal.ITIMER_REAL, self.interval, self.interval)
        else:
            threading.Thread(target=self._follow, daemon=True).start()

    def stop(self) -> None:
        if self.by_signal and self._running:
            self.displaced = signal.getsignal(signal.SIGALRM) != self._alarm
            if not self.displaced:
                signal.setitimer(signal.ITIMER_REAL, 0.0)  # the handler stays: only the main thread may take it away
        self._running = False

    def _alarm(self, _number: int, frame: FrameType | None) -> None:
        if not self.watch.begun or self.watch.over:
            self._last = self.clock()
        elif self.watch.off_main_thread():
            self.look(sys._current_frames().get(self.watch.thread))
        else:
            self.look(frame)

    def _follow(self) -> None:
        while self._running:
            time.sleep(self.interval)
            if self.watch.begun and not self.watch.over:
                self.look(sys._current_frames().get(self.watch.thread))
            else:
                self._last = self.clock()

    def look(self, frame: FrameType | None) -> None:
        now = self.clock()
        stack: list[tuple[CodeType, int]] = []
        while frame is not None and len(stack) < DEEPEST:
            stack.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        self.fresh.append((now, now - max(self._last, self.watch.began), tuple(stack)))
        self._last = now
        self.looks += 1
        self.cost += self.clock() - now

    def sink(self, phase: str, end: float, _note: Any) -> None:
        """A stretch that ended at `end` was `phase`: so were the looks taken in it."""
        fresh = self.fresh
        while fresh and fresh[0][0] <= end:
            _, seconds, stack = fresh.popleft()
            key = (phase, stack)
            self.charged[key] = self.charged.get(key, 0.0) + seconds


OURS = str(Path(hotloop.doctor.__file__).parent) + os.sep
LIBRARIES = tuple(
    {str(Path(path).resolve()) + os.sep for name, path in sysconfig.get_paths().items() if name.endswith("lib")}
)
PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
USER, LIBRARY, DOCTOR = "user", "library", "doctor"


class Places:
    """Whose code a file is, and how a report names it."""

    def __init__(self, script: str) -> None:
        self.folder = str(Path(script).resolve().parent) + os.sep
        self.kind = cache(self._kind)
        self.name = cache(self._name)
        self.whose = cache(lambda code: self.kind(code.co_filename))

    def _kind(self, file: str) -> str:
        """The user's own is what is neither installed, nor of the standard library, nor ours."""
        if file.startswith(OURS):
            return DOCTOR
        if file.startswith("<") or any(part in file for part in PACKAGES):
            return LIBRARY
        full = str(Path(file).resolve()) if os.path.exists(file) else file
        if full.startswith(self.folder) and not any(part in full for part in PACKAGES):
            return USER
        return LIBRARY if full.startswith(LIBRARIES) or not os.path.exists(file) else USER

    def _name(self, file: str) -> str:
        """Relative to the script's folder, or to where it is installed; no path of this machine."""
        if file.startswith("<"):
            return file
        full = str(Path(file).resolve())
        roots = [self.folder, *(path.rstrip(os.sep) + os.sep for path in sys.path if path), *LIBRARIES]
        inside = [full[len(root) :] for root in roots if full.startswith(root)]
        if inside and full.startswith(self.folder) and not any(part in full for part in PACKAGES):
            return full[len(self.folder) :]
        return min(inside, key=len) if inside else os.path.basename(full)

    def where(self, file: str, line: int) -> str:
        return f"{self.name(file)}:{line}"

    def frame(self, code: CodeType, instruction: int) -> str:
        return f"{code.co_qualname} ({self.where(code.co_filename, line_of(code, instruction))})"


@cache
def line_of(code: CodeType, instruction: int) -> int:
    if instruction < 0:
        return code.co_firstlineno
    lines = [line for start, end, line in code.co_lines() if start <= instruction < end and line is not None]
    return lines[0] if lines else code.co_firstlineno
