"""What runs in a worker process: a group of envs behind the same adapter as in process, answering orders.

Imports stay light: no torch. A worker ends when it is told to, when its line closes, and at the latest when the pool's
process does, whatever the env is doing then.

A file of the user's is run once more in every worker; one that was edited meanwhile must not change the envs.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import fcntl
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from hotloop.core.errors import EnvError, HotloopError
from hotloop.core.interrupts import raises_interrupt
from hotloop.core.settings import build
from hotloop.core.types import EnvStep, map_obs
from hotloop.core.user_files import file_digest, is_file, whole_path
from hotloop.envs.gymnasium_envs import GymnasiumEnvs
from hotloop.envs.gymnasium_make import is_registered
from hotloop.envs.registry import make_envs
from hotloop.envs.workers import messages
from hotloop.envs.workers.messages import BufferPlan, Slab, slabs_in
from hotloop.presets.env_settings import EnvSettings

_first_seen: dict[str, str] = {}


def first_digest(env_id: str) -> str:
    """Of the file in `path/to/file.py:Class` as this process saw it first; empty for other ids."""
    return _first_seen.setdefault(whole_path(env_id), file_digest(env_id)) if is_file(env_id) else ""


def require_unchanged(env_id: str, digest: str) -> None:
    if digest and file_digest(env_id) != digest:
        raise EnvError(
            f"the file of `{env_id}` was changed since this program first made envs of it",
            "start the program anew, or take the change back",
        )


STACK_SIGNAL = signal.SIGUSR1


def main() -> None:
    """Serve on descriptors that the pool passed on: the line, a pipe that closes when the pool ends, and the notes."""
    line_number, lifeline, notes = map(int, sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to all processes of a run: the pool's decides, and ends us
        signal.signal(number, _take_no_notice)  # not SIG_IGN, which the env's own children would inherit
    for descriptor in (line_number, lifeline, notes):
        os.set_inheritable(descriptor, False)  # the env's own children must not keep the line open
    _end_with(lifeline)
    request = json.loads(os.pread(notes, os.fstat(notes).st_size, 0))
    faulthandler.enable(notes)
    faulthandler.register(STACK_SIGNAL, notes)
    with socket.socket(fileno=line_number) as line, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        _Server(line, request).run()
    sys.stdout.flush()
    sys.stderr.flush()
    atexit._run_exitfuncs()  # what the env's libraries want to tidy up; taking the interpreter down costs 0.1 s more
    os._exit(0)


@raises_interrupt
def _take_no_notice(*_: object) -> None:
    """Never raises: a KeyboardInterrupt in a worker is the env's own."""


def _end_with(lifeline: int) -> None:
    """Have the kernel kill this process and its children once the pipe's other end closes: stopped or in a loop,
    the env cannot prevent it. Elsewhere than on Linux a worker sees its line close when the step is over."""
    if not hasattr(fcntl, "F_SETSIG"):
        return
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


class _Server:
    def __init__(self, line: socket.socket, request: dict[str, Any]) -> None:
        self._line = line
        self._request = request
        self._rows = slice(request["first"], request["first"] + len(request["seeds"]))
        self._slabs: list[Slab] = []

    def run(self) -> None:
        try:
            envs = self._make()
        except BaseException as error:
            self._send_error(error)
            return
        try:
            self._report(envs)
            self._serve(envs)
        finally:
            envs.close()

    def _make(self) -> GymnasiumEnvs:
        settings = build(EnvSettings, self._request["settings"])
        require_unchanged(settings.id, self._request["source"])
        if ":" not in settings.id and not is_registered(settings.id):  # the pool has found it: another process
            raise EnvError(
                f"`{settings.id}` is registered by your program, which its workers do not run",
                f"register it in a module, and name that too: `module:{settings.id}`",
            )
        seeds = np.array(self._request["seeds"], np.uint64)
        envs = make_envs(settings, len(seeds), seeds)
        if not isinstance(envs, GymnasiumEnvs):
            envs.close()
            raise EnvError(f"`{settings.id}` steps all its envs at once", "leave `workers` out, or derive it from Env")
        envs._witness.steps = self._request["steps"]  # of the pool: errors count on where a worker was started again
        return envs

    def _report(self, envs: GymnasiumEnvs) -> None:
        """Say what the envs are like and take the memory that is laid out for them."""
        own = BufferPlan(self._request["num_envs"], envs.obs_spec, envs.action_spec, envs.has_action_mask, envs.raw_obs)
        messages.send_message(self._line, messages.plan_as_data(own))
        _, descriptors, _, _ = socket.recv_fds(self._line, len(messages.MEMORY), 1)
        if not descriptors:
            raise ConnectionResetError
        plan = messages.plan_from_data(messages.read_message(self._receive))
        try:
            self._slabs = [slab.rows(self._rows) for slab in slabs_in(descriptors[0], plan)]
        finally:
            os.close(descriptors[0])

    def _serve(self, envs: GymnasiumEnvs) -> None:
        actions: dict[bytes, Callable[[], bytes]] = {}
        for number, slab in enumerate(self._slabs):
            actions[messages.STEP[number]] = lambda slab=slab: _step(envs, slab)  # type: ignore[misc]
            actions[messages.RESET[number]] = lambda slab=slab: _reset(envs, slab)  # type: ignore[misc]
        # Asleep while there is no order: looking again and again for 20 to 60 microseconds first halved the rate of two
        # envs in two workers on two cores, where the pool's own process then waits for a core.
        receive, send = self._line.recv, self._line.send
        while (order := receive(1)) in actions:
            try:
                answer = actions[order]()
            except BaseException as error:
                send(messages.FAILED)
                self._send_error(error)
            else:
                send(answer)

    def _send_error(self, error: BaseException) -> None:
        data = messages.error_as_data(error)
        if isinstance(error, HotloopError):
            data["message"] = _renumbered(data["message"], self._request["settings"]["id"], self._request["first"])
        messages.send_message(self._line, data)

    def _receive(self, count: int) -> bytes:
        received = self._line.recv(count, socket.MSG_WAITALL)
        if len(received) < count:
            raise ConnectionResetError
        return received


def _step(envs: GymnasiumEnvs, slab: Slab) -> bytes:
    step: EnvStep = envs.step(slab.action.copy())  # a copy: an env may keep its action, and the slab is written again
    map_obs(np.copyto, slab.final_obs, step.final_obs)
    slab.reward[...] = step.reward
    slab.terminated[...] = step.terminated
    slab.truncated[...] = step.truncated
    if slab.final_mask is not None:
        slab.final_mask[...] = step.final_action_mask
    if step.obs is step.final_obs:
        return messages.DONE
    map_obs(np.copyto, slab.next_obs, step.obs)
    if slab.next_mask is not None:
        slab.next_mask[...] = step.action_mask
    return messages.DONE_WITH_ENDINGS


def _reset(envs: GymnasiumEnvs, slab: Slab) -> bytes:
    obs, mask = envs.reset()
    map_obs(np.copyto, slab.final_obs, obs)
    if slab.final_mask is not None:
        slab.final_mask[...] = mask
    return messages.DONE


def _renumbered(message: str, env_id: str, first: int) -> str:
    """The adapter counts the envs of its group from 0; the user counts those of the pool."""
    start = f"`{env_id}` env "
    number, space, rest = message.removeprefix(start).partition(" ")
    if not message.startswith(start) or not number.isdigit():
        return message
    return f"{start}{int(number) + first}{space}{rest}"
