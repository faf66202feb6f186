"""Runs the commands of docs/story.md in order; `python -m tests.story_page` writes their answers into the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "story.md"
BLOCK = re.compile(r"^```(\w+) ?([\w.]*)\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)
EXIT_CODES = {"--against fourth.py": 1}
"""Of the command that has this in it: the verdict is `different`."""
MOST_LINES = 32
"""Of an answer that is longer, what comes first."""


def run_page(folder: Path, thinned: Mapping[str, str]) -> list[tuple[str, str]]:
    """(command, answer) in order; files of the page are written first."""
    said = []
    words = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    for kind, name, text in BLOCK.findall(PAGE.read_text()):
        if kind == "python":
            (folder / name).write_text(text)
        for command in text.splitlines() if kind == "sh" else ():
            shorter = command
            for long, short in thinned.items():
                shorter = shorter.replace(long, short)
            environment = {**os.environ, **words, "COLUMNS": "110"}
            answer = subprocess.run(shorter, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
            wanted = next((code for part, code in EXIT_CODES.items() if part in command), 0)
            assert answer.returncode == wanted, f"{shorter}\n{answer.stdout}\n{answer.stderr}"
            said.append((command, answer.stdout))
    return said


def with_answers(text: str, said: list[tuple[str, str]]) -> str:
    """The page with the last answer of each block of commands in the `text` block after it."""
    answers = dict(said)

    def written(found: re.Match[str]) -> str:
        commands = [one for one in BLOCK.findall(text[: found.start()]) if one[0] == "sh"][-1][2].splitlines()
        lines = [line.rstrip() for line in answers[commands[-1]].strip().splitlines()]
        shown = lines[:MOST_LINES] + (["..."] if len(lines) > MOST_LINES else [])
        return "```text\n" + "\n".join(shown) + "\n```\n"

    return re.sub(r"^```text\n.*?^```\n", written, text, flags=re.DOTALL | re.MULTILINE)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PAGE.write_text(with_answers(PAGE.read_text(), run_page(Path(place), {})))
