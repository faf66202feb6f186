"""Trains on small file systems that fill up or turn read-only, frees them and resumes; `test_full_disk.py` runs it.

It must be root of a mount namespace of its own (`unshare -rm`). Prints a JSON object for each disk:
how training ended, whether what had been saved still loads, and whether the resumed run ends as it should.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hotloop
from hotloop.core.errors import HotloopError
from hotloop.runs import checkpoint


class ReadOnly:
    """A progress display that makes the disk read-only after so many iterations."""

    def __init__(self, disk: Path, iterations: int) -> None:
        self._disk, self._left = disk, iterations

    def say(self, text: str) -> None:
        pass

    def show(self, session: Any, timer: Any, row: dict[str, Any] | None = None) -> None:
        if row is not None:
            return
        self._left -= 1
        if self._left == 0:
            # what the run has open for writing would refuse an ordinary remount; a shut-down file system would not ask
            mount("-o", "bind", str(self._disk), str(self._disk))
            mount("-o", "remount,bind,ro", str(self._disk))


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def try_disk(preset: str, tree: dict[str, Any], disk: Path, kilobytes: int, read_only_at: int) -> dict[str, Any]:
    disk.mkdir()
    mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(disk))
    run_dir = disk / "run"
    settings = hotloop.preset(preset, **{**tree, "run_dir": str(run_dir)})
    try:
        hotloop.train(settings, progress=ReadOnly(disk, read_only_at) if read_only_at else None)
        ended = "finished"
    except HotloopError as error:
        ended = str(error)
    saved = [path.name for path in (run_dir / "checkpoints").glob("[0-9]*")]
    unusable: list[str] = []
    found = checkpoint.newest(run_dir / "checkpoints", unusable.append) if saved else None
    if read_only_at:
        subprocess.run(["umount", str(disk)], check=True)
    mount("-o", "remount,size=100m", str(disk))
    again = hotloop.resume(run_dir) if (run_dir / "settings.toml").exists() else hotloop.train(settings)
    subprocess.run(["umount", str(disk)], check=True)
    loads = not unusable and (found is not None or not saved)
    size = {"read_only_at": read_only_at} if read_only_at else {"kilobytes": kilobytes}
    return {**size, "ended": ended, "saved": len(saved), "loads": loads, "digest": again["digest"]}


def main() -> None:
    order = json.loads(sys.argv[1])
    folder = Path(order["folder"])
    for number, (kilobytes, read_only_at) in enumerate(order["disks"]):
        answer = try_disk(order["preset"], order["tree"], folder / f"disk{number}", kilobytes, read_only_at)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
