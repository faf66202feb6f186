"""What open pages cost a training: its processor time with a dashboard and its clients, and without, by turns.

python -m tests.dashboard.clients --clients 50 --pairs 4 --env-steps 100k
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

from tests.dashboard.test_dashboard_browser import Server


def train(run: Path, env_steps: str) -> float:
    """Processor seconds of training alone, as the run's process spent them."""
    program = (
        "import resource, sys\nfrom hotloop.cli.main import main\nmain(sys.argv[1:])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\nprint(used.ru_utime + used.ru_stime, file=sys.stderr)\n"
    )
    words = ["train", "cartpole-dqn", "--total-env-steps", env_steps, "--run-dir", str(run), "--quiet"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    return float(done.stderr.strip().splitlines()[-1])


def cookie_of(link: str) -> str:
    with urllib.request.urlopen(link) as answer:
        return str(answer.headers["set-cookie"]).partition(";")[0]


class Client(threading.Thread):
    """Reads the stream as a page does, and counts what it hears."""

    def __init__(self, port: int, cookie: str) -> None:
        super().__init__(daemon=True)
        self.heard = 0
        self._socket = socket.create_connection(("127.0.0.1", port))
        asked = f"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n"
        self._socket.sendall(asked.encode())

    def run(self) -> None:
        try:
            while part := self._socket.recv(65536):
                self.heard += part.count(b"event: rows")
        except OSError:
            return

    def close(self) -> None:
        self._socket.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("clients", 50), ("pairs", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--env-steps", default="60k")
    given = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder / "warm", "4k")
        for pair in range(given.pairs):
            spent = {}
            for watched in (True, False) if pair % 2 else (False, True):
                server = Server(folder) if watched else None
                clients = [Client(server.port, cookie_of(server.link)) for _ in range(given.clients)] if server else []
                for client in clients:
                    client.start()
                spent[watched] = train(folder / f"run-{pair}-{watched}", given.env_steps)
                heard = [client.heard for client in clients]
                for client in clients:
                    client.close()
                if server is not None:
                    server.end()
                    told = {"clients": len(heard), "least": min(heard), "most": max(heard)}
                    print(json.dumps(told), file=sys.stderr, flush=True)
            ratios.append(spent[True] / spent[False])
            print(f"watched {spent[True]:.2f} s, alone {spent[False]:.2f} s: {ratios[-1]:.4f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.4f} of {len(ratios)} pairs")


if __name__ == "__main__":
    main()
