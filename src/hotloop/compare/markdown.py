"""The comparison as Markdown: `table.md` in its folder, or a part of a page that people write around."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hotloop.compare.curves import Against
from hotloop.compare.report import CURVES, Comparison, chart_of, notes
from hotloop.compare.svg import as_svg
from hotloop.compare.table import arm_rows, as_markdown, pair_rows, plain
from hotloop.compare.words import details, sentence
from hotloop.core.errors import SettingsError
from hotloop.runs.files import explained, make_folder, write_file

_AGAINST: Mapping[Against, str] = {"env_steps": "env steps", "seconds": "training time"}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def as_page(comparison: Comparison, pictures: Mapping[Against, str]) -> str:
    """Tables, verdicts, both figures with the command under each, and how all that is to be read."""
    question, threshold = comparison.question, comparison.threshold
    verdicts = [
        f"- **{plain(sentence(contrast))}** " + plain(" ".join(details(contrast, threshold))) + "\n"
        for contrast in comparison.contrasts
    ]
    parts = [
        as_markdown(arm_rows(comparison.summaries, question.measure, threshold)),
        as_markdown(pair_rows(comparison.contrasts, threshold)),
        "".join(verdicts),
        "".join(f"- failed: {plain(job.name)}\n" for job in comparison.failed),
        *[
            f"![{question.measure} against {name}]({pictures[against]})\n\n```\n{question.command}\n```\n"
            for against, name in _AGAINST.items()
        ],
        "\n".join(notes(comparison)) + "\n",
    ]
    return "\n".join(part for part in parts if part)


def write_table(comparison: Comparison, folder: Path) -> None:
    page = as_page(comparison, {against: f"{name}.svg" for against, name in CURVES.items()})
    write_file(folder / "table.md", page.encode())


def parse_target(text: str) -> tuple[Path, str]:
    """`FILE.md[#NAME]`; the name is the file's where none is given."""
    file, _, name = text.partition("#")
    name = name or Path(file).stem
    if not file.endswith(".md") or not _NAME.fullmatch(name):
        raise SettingsError(f"`--markdown` is `{text}`, expected FILE.md or FILE.md#NAME, NAME of letters and digits")
    return Path(file), name


def write_part(comparison: Comparison, file: Path, name: str) -> None:
    """Put the page between two marks in `file`, in the place of what stood there, or at its end; figures lie beside."""
    folder = file.parent
    make_folder(folder)
    pictures: dict[Against, str] = {against: f"{name}-{against.replace('_', '-')}.svg" for against in CURVES}
    for against, picture in pictures.items():
        write_file(folder / picture, as_svg(chart_of(comparison, against)).encode())
    with explained("read", file):
        before = file.read_text() if file.exists() else f"# {name}\n"
    write_file(file, with_part(before, name, as_page(comparison, pictures)).encode())


def with_part(before: str, name: str, content: str) -> str:
    start, end = f"<!-- compare {name} -->", f"<!-- end of compare {name} -->"
    part = f"{start}\n\n{content}\n{end}"
    if start not in before:
        return f"{before.rstrip()}\n\n{part}\n"
    head, _, rest = before.partition(start)
    _, found, tail = rest.partition(end)
    if not found:
        raise SettingsError(f"`{start}` has no `{end}` after it", "put that line back where the part ended")
    return head + part + tail
