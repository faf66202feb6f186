"""What open pages cost a training: its processor time per env step in blocks with a dashboard and its clients, and
without, interleaved within one training.

python -m tests.dashboard.clients --pairs 10 --seconds 60 --alone 20     # ten minutes with fifty clients
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
import time
import urllib.request
from pathlib import Path

import psutil

from tests.dashboard.served import Server


def env_steps_of(run: Path) -> int:
    """Of the last whole row; the training writes one every few hundredths of a second."""
    with open(run / "events.jsonl", "rb") as stream:
        stream.seek(max(0, stream.seek(0, 2) - 4_096))
        whole = [line for line in stream.read().split(b"\n")[1:-1] if b'"progress"' in line]
    return int(json.loads(whole[-1])["env_steps"])


class Training:
    """One long training in a process of its own; no evaluation or checkpoint falls into any block."""

    def __init__(self, run: Path) -> None:
        words = (
            "train cartpole-dqn --total-env-steps 1e9 --evaluation.every 1e9 --checkpoint.every 1e9 --log-every 1000"
        )
        words += f" --run-dir {run} --quiet"
        self.run = run
        self.process = psutil.Popen([sys.executable, "-m", "hotloop", *words.split()], stderr=subprocess.DEVNULL)
        while not (run / "events.jsonl").exists() or (run / "events.jsonl").stat().st_size < 20_000:
            time.sleep(0.5)
            assert self.process.poll() is None

    def cost(self, seconds: float) -> float:
        """Microseconds of processor time per env step, over so many seconds from now."""
        begun = self._now()
        time.sleep(seconds)
        ended = self._now()
        return 1e6 * (ended[0] - begun[0]) / (ended[1] - begun[1])

    def _now(self) -> tuple[float, int]:
        times = self.process.cpu_times()
        return times.user + times.system, env_steps_of(self.run)


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


def watched_cost(training: Training, clients: int, seconds: float) -> float:
    server = Server(training.run.parent)
    listening = [Client(server.port, cookie_of(server.link)) for _ in range(clients)]
    try:
        for client in listening:
            client.start()
        time.sleep(min(5.0, seconds / 4))  # the server's own start is not what is asked for
        cost = training.cost(seconds)
        heard = [client.heard for client in listening]
        print(f"  {len(heard)} clients heard {min(heard)} to {max(heard)} times of new rows", flush=True)
        return cost
    finally:
        for client in listening:
            client.close()
        server.end()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("clients", 50), ("pairs", 10), ("seconds", 60), ("alone", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        training = Training(Path(name) / "run")
        try:
            for pair in range(given.pairs):
                costs = {}
                for watched in (True, False) if pair % 2 else (False, True):
                    costs[watched] = (
                        watched_cost(training, given.clients, given.seconds) if watched else training.cost(given.alone)
                    )
                ratios.append(costs[True] / costs[False])
                print(f"watched {costs[True]:.3f} us, alone {costs[False]:.3f} us: {ratios[-1]:.4f}", flush=True)
        finally:
            training.process.kill()
            training.process.wait()
    print(
        f"median ratio {statistics.median(ratios):.4f} of {len(ratios)} pairs, {min(ratios):.4f} to {max(ratios):.4f}"
    )


if __name__ == "__main__":
    main()
