"""Ends a run that was asked to stop and does not, because its env hangs; says where. A learner at work is waited for.

This file is also the program that watches. It is a process of its own: C code that keeps the interpreter's lock stops
every thread of the training process, and its Python signal handlers with them. The kernel still runs CPython's C
handler, which writes the signal's number into the wake-up descriptor, and faulthandler's, which writes the stack.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import sys
import threading
import time

STOP_SECONDS = 25.0
"""From the first SIGINT or SIGTERM to the end. The promise is 30."""
LOOK_SECONDS, IDLE_SECONDS, STACK_SECONDS = 0.25, 5.0, 1.0
ENV, LEARNER, LEARNS = "envs", "learner", {"algos", "lanes"}
"""Where a run can be: below a frame of the package that calls envs, or of those that go through networks."""
LONGEST_LEARNING = 12
"""Times `STOP_SECONDS` that an update may take between two of its minibatches."""
STACK_SIGNAL = int(getattr(signal, "SIGRTMAX", signal.SIGUSR2 + 1)) - 1  # that nobody else uses
LONGEST_STACK = 100_000


class Watchdog:
    """Watches the process while active; in other threads than the main one, where no signal arrives, it does not."""

    def __init__(self, env_id: str) -> None:
        self._env_id = env_id
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> Watchdog:
        if os.name == "posix" and threading.current_thread() is threading.main_thread():
            with contextlib.ExitStack() as started:
                self._start(started)
                self._cleanup = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def _start(self, cleanup: contextlib.ExitStack) -> None:
        import faulthandler
        import subprocess

        from hotloop.core.children import own_program
        from hotloop.envs.workers.messages import anonymous_file

        stack = anonymous_file("hotloop-stack")
        cleanup.callback(os.close, stack)
        there, here = os.pipe()
        cleanup.callback(os.close, here)
        os.set_blocking(here, False)
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        words = [str(os.getpid()), str(STOP_SECONDS), str(stack), self._env_id, package]
        try:
            watcher = subprocess.Popen(
                own_program(__file__, *words),
                stdin=there,
                stdout=subprocess.DEVNULL,  # whoever reads our stdout must not wait for it
                pass_fds=[stack],
                process_group=0,  # Ctrl-C in the terminal is for the run
            )
        finally:
            os.close(there)
        cleanup.callback(watcher.wait)
        cleanup.callback(watcher.kill)
        faulthandler.register(STACK_SIGNAL, stack)
        cleanup.callback(faulthandler.unregister, STACK_SIGNAL)
        cleanup.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(here, warn_on_full_buffer=False))


def watch(run: int, seconds: float, stack: int, env_id: str, package: str) -> None:
    """Until the run has ended, by itself or by us."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # sent to all processes of a run
        signal.signal(each, signal.SIG_IGN)
    number = 0
    while not number:
        number = _next_signal(run, IDLE_SECONDS)
    where, waited = LEARNER, 0.0
    while where == LEARNER and waited < LONGEST_LEARNING * seconds:
        _wait(run, seconds)
        waited += seconds
        where, frames = read_stack(_stack_of(run, stack), package)
    name, who = signal.Signals(number).name, f"`{env_id}` hangs" if where == ENV else "it hangs outside of its env"
    text = f"error: the run did not end within {waited:g} s of {name}: {who}, and was killed here"
    hint = "`hotloop resume RUN` continues from its last checkpoint, or begins anew where there is none yet"
    lines = [text, *(f"    {frame}" for frame in frames), "", f"hint: {hint}"]
    told = "\n".join("".join(filter(str.isprintable, line)) for line in lines)
    with contextlib.suppress(OSError):
        os.write(2, f"{told}\n".encode(errors="replace"))
    os.kill(run, signal.SIGKILL)


def _wait(run: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        _next_signal(run, LOOK_SECONDS)


def _next_signal(run: int, seconds: float) -> int:
    """A SIGINT or SIGTERM that the run was sent within so long, or 0. Ends this program once the run has ended."""
    ready, _, _ = select.select([0], [], [], seconds)
    numbers = os.read(0, 64) if ready else b"\0"
    if not numbers or os.getppid() != run:  # a child that the env forked may keep the pipe open
        raise SystemExit
    return next((number for number in numbers if number in (signal.SIGINT, signal.SIGTERM)), 0)


def _stack_of(run: int, stack: int) -> str:
    """What faulthandler writes of the run now; empty where it cannot."""
    begin = os.fstat(stack).st_size
    os.kill(run, STACK_SIGNAL)
    end = time.monotonic() + STACK_SECONDS
    while os.fstat(stack).st_size == begin and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.05)  # the stack is written line by line
    return os.pread(stack, LONGEST_STACK, begin).decode(errors="replace")


def read_stack(text: str, package: str) -> tuple[str, list[str]]:
    """Where the main thread is (it is listed last), and the frames of what we called there, innermost first."""
    frames = [line.strip() for line in text.rpartition("hread 0x")[2].splitlines() if line.startswith("  File ")]
    ours = f'File "{package}{os.sep}'
    foreign = list(itertools.takewhile(lambda frame: not frame.startswith(ours), frames))
    packages = {frame.removeprefix(ours).partition(os.sep)[0] for frame in frames if frame.startswith(ours)}
    where = ENV if ENV in packages else LEARNER if packages & LEARNS else ""
    return where, foreign or frames


def main(words: list[str]) -> None:
    run, seconds, stack, env_id, package = words
    watch(int(run), float(seconds), int(stack), env_id, package)


if __name__ == "__main__":
    main(sys.argv[1:])
