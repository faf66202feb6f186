"""A dashboard as the command starts it: a process of its own, behind a real socket."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import IO


class Server:
    def __init__(
        self, folder: Path, *options: str, port: int = 0, most_files: int = 0, errors: IO[str] | None = None
    ) -> None:
        words = ["dashboard", str(folder), "--no-browser", "--port", str(port), *options]
        command = [sys.executable, "-m", "hotloop", *words]
        if most_files:
            command = ["sh", "-c", f'ulimit -n {most_files} && exec "$@"', "sh", *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors or subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.link = self.process.stdout.readline().strip()
        self.port = int(self.link.split(":")[2].split("/")[0])

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
