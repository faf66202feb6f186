"""Memory of the dashboard while a run grows for an hour: one look a second, ten rows between two looks, no waiting.

python -m tests.dashboard.growing --looks 3600
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import psutil

from hotloop.dashboard.library import Library
from hotloop.dashboard.sources import Source
from hotloop.dashboard.table import changed_rows
from tests.dashboard.synthetic import event_rows, write_run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--looks", type=int, default=3_600)
    given = parser.parse_args()
    process = psutil.Process()
    with tempfile.TemporaryDirectory() as name:
        run = write_run(Path(name) / "run", rows=100, finished=False)
        library = Library(Path(name))
        library.scan()
        rows = [json.dumps(row) + "\n" for row in event_rows(0, 10 * given.looks, 0, 400.0)][1:]
        before = process.memory_info().rss
        with open(run / "events.jsonl", "a") as stream:
            for look in range(given.looks):
                stream.write("".join(rows[10 * look : 10 * look + 10]))
                stream.flush()
                version = library.version
                library.look(Source("run", "run"))
                changed_rows(library, version)
                if (look + 1) % max(1, given.looks // 6) == 0:
                    grown = (process.memory_info().rss - before) / 2**20
                    print(f"after {look + 1:,} looks: {grown:+.1f} MiB", flush=True)
        library.index.close()


if __name__ == "__main__":
    main()
