"""The one signal that the recorder uses, SIGALRM: it wakes the sampler, and ends a script that blocks.

It is the script's the moment the script asks for it: whoever sets a handler or a timer for it, waits for a signal or
only asks whose it is gets Python's own answer, and the recorder does without. No other signal is touched.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from .passes import Pass

ABOUT_ONE = ("signal", "getsignal", "siginterrupt")
"""Take the signal's number first."""
ABOUT_MANY = ("sigwait", "sigwaitinfo", "sigtimedwait", "pthread_sigmask")
"""Have signals among their arguments."""
ABOUT_ANY = ("alarm", "setitimer", "getitimer", "pause", "set_wakeup_fd")


class Alarm(Pass):
    """Stands before all passes that want it."""

    def __init__(self) -> None:
        self.owned = False
        """Whether it is ours just now."""
        self.displaced = False
        """Whether the script took it for itself."""
        self._tick: Callable[[FrameType | None], None] | None = None
        self._beside: Callable[[FrameType | None], None] | None = None
        self._stand_ins: list[Callable[[], None]] = []
        self._raise: BaseException | type[BaseException] | None = None

    def prepare(self) -> None:
        free = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        if not free or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
            return
        signal.signal(signal.SIGALRM, self._ring)
        signal.siginterrupt(signal.SIGALRM, False)
        self.owned = True
        for name in (*ABOUT_ONE, *ABOUT_MANY, *ABOUT_ANY):
            if hasattr(signal, name):
                setattr(signal, name, self._given_back(getattr(signal, name)))

    def ring_every(self, seconds: float, tick: Callable[[FrameType | None], None]) -> bool:
        """Have `tick` called with the frame that ran; False where the signal is not ours."""
        if not self.owned:
            return False
        self._tick = tick
        _setitimer(signal.ITIMER_REAL, seconds, seconds)
        return True

    def ring_too(self, tick: Callable[[FrameType | None], None]) -> bool:
        """Have this called as well; False where nothing rings."""
        if self._tick is None:
            return False
        self._beside = tick
        return True

    def instead(self, start: Callable[[], None]) -> None:
        """What to begin where the script takes the signal while it rings: a thread. None is begun before, since a
        program with a single thread is faster: the locks that PyTorch takes at every operation cost it nothing, by 2 %
        of a loop."""
        self._stand_ins.append(start)

    def stop(self) -> None:
        """No more ticks; the handler stays, since only the main thread may take it away."""
        self._tick = self._beside = None
        self._stand_ins.clear()
        if self.owned:
            _setitimer(signal.ITIMER_REAL, 0.0)

    def raise_in_main_thread(self, error: type[BaseException]) -> bool:
        """Also out of a call that blocks; False where the signal is not ours."""
        if not self.owned:
            return False
        self._raise = error
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
        return True

    def calm(self) -> None:
        """Raise nothing that has not been raised yet."""
        self._raise = None

    def forked(self) -> None:
        self._stand_ins.clear()
        self.give_back()

    def give_back(self) -> None:
        """As if it had never been ours."""
        if not self.owned:
            return
        self.owned, self.displaced = False, True
        with contextlib.suppress(ValueError):  # not the main thread: `_ring` does it when the signal comes
            _setitimer(signal.ITIMER_REAL, 0.0)
            _signal(signal.SIGALRM, signal.SIG_DFL)
        stand_ins, self._stand_ins = self._stand_ins, []
        for start in stand_ins:
            start()

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._raise is not None:
            error, self._raise = self._raise, None
            raise error
        if not self.owned:
            _signal(signal.SIGALRM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGALRM)
            return
        for tick in (self._tick, self._beside):
            if tick is not None:
                tick(frame)

    def _given_back(self, function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__

        def meant(args: tuple[Any, ...]) -> bool:
            if name in ABOUT_ANY:
                return True
            return _is_alarm(args[0]) if name in ABOUT_ONE else any(map(_is_alarm, args[name == "pthread_sigmask"]))

        @functools.wraps(function)
        def hook(*args: Any, **keywords: Any) -> Any:
            if self.owned:
                try:
                    asked = meant(args)
                except Exception:  # a wrong call, which Python will refuse
                    asked = True
                if asked:
                    self.give_back()
            return function(*args, **keywords)

        return hook


def start_thread(target: Callable[[], None]) -> None:
    """A thread of ours, deaf to all signals: one that the script has blocked must not find its way through ours."""
    before = None if _mask is None else _mask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        threading.Thread(target=target, daemon=True).start()
    finally:
        if before is not None:
            _mask(signal.SIG_SETMASK, before)


def _is_alarm(number: Any) -> bool:
    return bool(number == signal.SIGALRM)


_signal = signal.signal
_mask: Any = getattr(signal, "pthread_sigmask", None)
_setitimer = getattr(signal, "setitimer", lambda *_: None)
