"""What a machine of a cluster does: says how it rounds, and trains one run, whose directory it sends home as it grows.

Runs inside a worker of Ray's. Only plain data crosses: dicts, texts, numbers and bytes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hotloop.core.children import own_child
from hotloop.core.errors import HotloopError
from hotloop.core.places import Done
from hotloop.core.temporary import TemporaryFolder
from hotloop.runs.directory import NODE
from hotloop.scale.janitor import Janitor
from hotloop.scale.local import LocalPlace
from hotloop.scale.shipping import Inbox, Outbox, Packet
from hotloop.scale.work import prepared

BEAT_SECONDS = 1.0
"""A sign of life, and what has changed in the run since the last."""
_SAVING_SECONDS = 5.0
_FAULTS = [os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM)]
_FAULTS += ["ended by signal", "MemoryError", "can't start new thread", "Cannot allocate memory"]
"""What the machine is to blame for, and not the run: another one may do better."""


def name_of(host: str, key: str) -> str:
    """What people are told of a machine: several nodes of a cluster may lie on one."""
    return f"{host}-{key[:6]}"


def facts() -> dict[str, Any]:
    """`core.arithmetic` of this machine, asked of a process of its own: PyTorch does not stay in the worker."""
    answer = subprocess.run(own_child("hotloop.core.arithmetic"), capture_output=True, text=True, timeout=300)
    if answer.returncode != 0:
        return {"error": answer.stderr.strip().splitlines()[-1] if answer.stderr.strip() else "it cannot be asked"}
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def train(
    spec: Mapping[str, Any],
    folders: Mapping[str, Mapping[str, bytes]],
    begun: Sequence[Any],
    folder: str | None,
    beat: float = BEAT_SECONDS,
) -> Iterator[Packet]:
    """Packets of the run that `spec` describes, until the last, {"kind": "ended"}. `begun`: what is there of it."""
    import ray

    host, key = socket.gethostname(), ray.get_runtime_context().get_node_id()
    yield {"kind": "began", "host": host, "node": key}
    try:
        # nothing stays there, however this worker ends
        with TemporaryFolder("node", folder) as place, Janitor(place) as here:
            path = here / "run"
            inbox = Inbox(path)
            for packet in begun:
                inbox.take(ray.get(packet))
            inbox.close()
            outbox = Outbox(path)
            outbox.note_sent()
            files = {root: dict(content) for root, content in folders.items()}
            with prepared(spec, path, files, here) as task:
                named = replace(task, environment={**task.environment, NODE: name_of(host, key)})
                yield from _trained(named, outbox, beat)
    except (HotloopError, OSError) as error:
        yield _ended(str(error))


def _trained(task: Any, outbox: Outbox, beat: float) -> Iterator[Packet]:
    place = LocalPlace(1, patience=_SAVING_SECONDS)
    with contextlib.closing(place.run([task])) as news:
        due = time.monotonic() + beat
        for one in news:
            if isinstance(one, Done):
                yield from outbox.packets(last=not one.error)
                log = task.log.read_bytes()[-(2**20) :] if task.log.exists() else b""
                yield _ended(one.error.replace(str(task.log), "its log"), log, outbox.bytes)
                return
            if time.monotonic() >= due:
                yield {"kind": "beat"}
                yield from outbox.packets()
                due = time.monotonic() + beat


def _ended(error: str, log: bytes = b"", sent: int = 0) -> Packet:
    blamed = any(text in error for text in _FAULTS)
    return {"kind": "ended", "error": error, "fault": blamed, "log": log, "bytes": sent}
