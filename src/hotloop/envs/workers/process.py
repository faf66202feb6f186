"""One worker process as the pool sees it: started, given orders, waited for, and ended whatever it is doing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from hotloop.core.children import own_child
from hotloop.core.errors import EnvError
from hotloop.core.interrupts import is_overdue
from hotloop.core.program import ONE_THREAD
from hotloop.envs.workers import messages
from hotloop.envs.workers.messages import BufferPlan, anonymous_file

PROGRAM = "hotloop.envs.workers.serve"
"""Not `multiprocessing`: it would run the user's main script again, and fork where torch has threads."""
LONGEST_TICK = 0.25
STACK_SECONDS = 1.0
END_SECONDS = 1.0
LONGEST_NOTE = 8_000


@dataclass(frozen=True)
class WorkerLost:
    """What became of a worker that will not answer any more, and its Python stack where there is one."""

    reason: str
    stack: str


class WorkerLostError(Exception):
    """Kept by nobody, unlike its `loss`: it would keep the frames it passed through, and the shared memory in them."""

    def __init__(self, loss: WorkerLost) -> None:
        super().__init__(loss.reason)
        self.loss = loss


class WorkerTimeouts:
    """How long workers may still take, together. A gap between two looks counts little: the machine may have slept,
    or this process was stopped, and the workers with it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.tick = min(LONGEST_TICK, seconds / 4)
        self._left = seconds
        self._last = time.monotonic()

    def is_over(self) -> bool:
        now = time.monotonic()
        self._left -= min(now - self._last, 2 * self.tick)
        self._last = now
        return self._left <= 0 or is_overdue()


class WorkerProcess:
    def __init__(self, request: dict[str, Any], folder: str) -> None:
        """Start a process that makes the envs of `request`; it has not answered yet."""
        self._loss: WorkerLost | None = None
        self._tick = 0.0
        text = json.dumps(request).encode()
        self._notes_start = len(text)
        with contextlib.ExitStack() as passed, contextlib.ExitStack() as kept:
            self._line, there = socket.socketpair()
            kept.callback(self._line.close)
            passed.callback(there.close)
            end, self._lifeline = os.pipe()
            kept.callback(os.close, self._lifeline)
            passed.callback(os.close, end)
            self._notes = anonymous_file("hotloop-worker-notes")  # the request, then what a crash handler writes
            kept.callback(os.close, self._notes)
            _write_all(self._notes, text)
            self._process = _start((there.fileno(), end, self._notes), folder)
            self._close_descriptors = kept.pop_all().close

    @property
    def pid(self) -> int:
        return self._process.pid

    def give(self, order: bytes) -> None:
        with contextlib.suppress(OSError):  # a dead one: found out by waiting for its answer
            self._line.send(order)

    def attach(self, memory: int, plan: BufferPlan) -> None:
        with contextlib.suppress(OSError):
            socket.send_fds(self._line, [messages.MEMORY], [memory])
            messages.send_message(self._line, messages.plan_as_data(plan))

    def answer(self, patience: WorkerTimeouts) -> bytes:
        """One byte; an error of the env is raised, a worker that is gone or hangs is a WorkerLostError."""
        received = self._receive(1, patience)
        if received == messages.FAILED:
            raise messages.error_from_data(self.message(patience))
        return received

    def message(self, patience: WorkerTimeouts) -> Any:
        return messages.read_message(lambda count: self._receive(count, patience))

    def has_ended(self) -> bool:
        """Left unreaped, so that its number still stands for it and its children."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        except ChildProcessError:
            return True

    def strike(self) -> None:
        """Kill it and what it started; its end is not waited for."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def kill(self, seconds: float = END_SECONDS) -> None:
        """End it, and give back all it held; may be called again."""
        self.strike()
        with contextlib.suppress(subprocess.TimeoutExpired):  # in the kernel's hands: it ends when those let go
            self._process.wait(seconds)
        self._close_descriptors()

    def _receive(self, count: int, patience: WorkerTimeouts) -> bytes:
        if self._loss is not None:
            raise WorkerLostError(self._loss)
        if self._tick != patience.tick:  # a system call: not at every step
            self._tick = patience.tick
            self._line.settimeout(self._tick)
        received = b""
        while len(received) < count:
            try:
                more = self._line.recv(count - len(received))
            except TimeoutError:
                if self.has_ended() and not self._has_more():  # its children may keep the line open
                    raise self._died() from None
                if patience.is_over() and not self._has_more():
                    raise self._hung(patience.seconds) from None
                continue
            except OSError:
                more = b""
            if not more:
                raise self._died()
            received += more
        return received

    def _has_more(self) -> bool:
        try:
            return bool(self._line.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK))
        except OSError:
            return False

    def _died(self) -> WorkerLostError:
        ended = wait_for(self.has_ended, END_SECONDS)  # its line closes a moment before
        stack = self._stack()
        self.kill()
        code = self._process.returncode
        if not ended or code is None:
            reason = "closed its line"
        elif code < 0:
            reason = f"was killed by signal {-code} ({_signal_name(-code)})"
        else:
            reason = f"left with exit code {code}"
        self._loss = WorkerLost(reason, stack)
        return WorkerLostError(self._loss)

    def _hung(self, seconds: float) -> WorkerLostError:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)
            os.kill(self.pid, signal.SIGCONT)  # a stopped process can show its stack only while it runs
        wait_for(lambda: self._stack().endswith("\n") or self.has_ended(), STACK_SECONDS)
        time.sleep(0.02)  # the stack is written line by line
        stack = self._stack()
        self.kill()
        within = f"within {seconds:g} s (`env.worker_timeout_seconds`)"
        self._loss = WorkerLost(f"did not answer {'when the run was asked to stop' if is_overdue() else within}", stack)
        return WorkerLostError(self._loss)

    def _stack(self) -> str:
        return os.pread(self._notes, LONGEST_NOTE, self._notes_start).decode(errors="replace")


def wait_for(condition: Any, seconds: float) -> bool:
    """Look every few milliseconds, for processes whose end has no descriptor to wait on."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def _start(passed: tuple[int, int, int], folder: str) -> subprocess.Popen[bytes]:
    """A process group of its own: Ctrl-C in the terminal does not reach it, and it can be ended with its children."""
    words = own_child(PROGRAM, *map(str, passed))
    variables = dict.fromkeys(ONE_THREAD, "1") | dict(os.environ)
    try:
        return subprocess.Popen(
            words, pass_fds=passed, process_group=0, cwd=folder, env=variables, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        raise EnvError(f"a worker process could not be started: {error}", "use fewer `env.workers`") from error


def _write_all(descriptor: int, text: bytes) -> None:
    while text:
        text = text[os.write(descriptor, text) :]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
