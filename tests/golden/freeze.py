"""`python -m tests.golden.freeze [NAME...]`: observe everything golden anew and write it down, or `answers` alone, or
the runs whose names begin so (on a machine that rounds otherwise than the others', they keep their own arithmetic).
What an intended change alters is then a diff to read."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in the suite
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tests.golden import answers, runs


def freeze_runs(beginnings: list[str]) -> None:
    kept = runs.frozen() if runs.FILE.exists() else {"arithmetic": {}, "runs": {}}
    here = runs.arithmetic()
    alike = not beginnings or kept["arithmetic"] == here
    known = [*runs.run_names("short"), *runs.run_names("long")]
    seen = dict(kept["runs"])
    for name in known:
        if not beginnings or name.startswith(tuple(beginnings)):
            with tempfile.TemporaryDirectory() as folder:
                seen[name] = runs.observe(name, Path(folder) / "run") | ({} if alike else {"arithmetic": here})
            changed = seen[name] != kept["runs"].get(name)
            print(f"{name}: {'changed' if changed else 'as before'}", file=sys.stderr)
    arithmetic = here if alike else kept["arithmetic"]
    write(runs.FILE, {"arithmetic": arithmetic, "runs": {name: seen[name] for name in known if name in seen}})


def freeze_answers() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found = {"answers": answers.answers(), "pages": answers.pages(Path("pages")), "errors": answers.errors()}
    write(answers.FILE, found)


def write(path: Path, data: object) -> None:
    """Lists of plain values on one line each."""
    text = json.dumps(data, indent=1)
    path.write_text(re.sub(r"\[[^\[\]{}]*\]", lambda found: " ".join(found[0].split()), text) + "\n")


def main(beginnings: list[str]) -> None:
    if "answers" in beginnings or not beginnings:
        freeze_answers()
    if beginnings != ["answers"]:
        freeze_runs([name for name in beginnings if name != "answers"])


if __name__ == "__main__":
    main(sys.argv[1:])
