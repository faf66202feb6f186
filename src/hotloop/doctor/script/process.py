"""One child process: started, bounded, and waited for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import hotloop.doctor.recorder
from hotloop.core.keeper import Keeper
from hotloop.doctor.recorder.order import Order

CHILD = Path(hotloop.doctor.recorder.__file__).with_name("child.py")
STDERR = 2


def run_child(order: Order) -> tuple[dict[str, Any] | None, int]:
    """What the recorder left, None where it died without a word; and how the process ended."""
    with tempfile.TemporaryDirectory(prefix="hotloop-doctor-") as folder:
        result, note = Path(folder) / "trace.json", Path(folder) / "order.json"
        note.write_text(replace(order, result=str(result)).as_json())
        code = _wait([sys.executable, str(CHILD), str(note)])
        return (json.loads(result.read_text()) if result.exists() else None), code


def _wait(command: list[str]) -> int:
    """The script prints to the doctor's stderr; an interrupt reaches both, and the child is given time to save."""
    with Keeper() as keeper, subprocess.Popen(command, stdout=STDERR, env=os.environ) as child:
        keeper.watch(child.pid, signal.SIGKILL)
        try:
            return _waited(child)
        finally:
            keeper.forget(child.pid)


def _waited(child: subprocess.Popen[bytes]) -> int:
    for last in (False, True):
        try:
            return child.wait(timeout=20.0 if last else None)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            if last:
                break
    child.kill()
    return child.wait()
