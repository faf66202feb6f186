"""Figures kept in a file, and the documents that quote them: tables are made from the file, quotes are held against it.

A document has a table where it says `<!-- prove CASE ... -->`, up to `<!-- end of prove -->`: of all kept cases that
one of the names fits, or of all. Anywhere else a figure belongs to the cases that its table row, list item or paragraph
names, in backticks or in a comment. `python -m hotloop.prove.figures` rewrites the tables of the documents below the
folder it runs in, and lists every quote that is out of date.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hotloop.prove.registry import FAMILIES, fits

KEPT = Path("docs/results/prove.json")
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
RATIO = re.compile(rf"(?<![\w.,])({NUMBER})x\b(?: \(({NUMBER}) to ({NUMBER})\))?")
SECONDS = {"s": 1.0, "ms": 1e-3, "microseconds": 1e-6}
TIME = re.compile(rf"(?<![\w.,])({NUMBER}) (ms|microseconds)\b")
ALLOCATIONS = re.compile(rf"allocations ({NUMBER}) -> ({NUMBER})")
ALLOCATED = "allocations {reference:,} -> {fast:,}"
ERROR = re.compile(r"error (\d\.\de-\d+)")
NOT_OF_A_CASE = re.compile(r"bought:?[^|;]*")
"""What fewer updates bought is no ratio of a case: plain against plain, in the page of results."""
TABLE = re.compile(r"(<!-- prove ?([^>]*?) ?-->\n).*?(<!-- end of prove -->)", re.DOTALL)
NAME = re.compile(r"`([^`]+)`|<!-- (?!prove|end of|compare)([^>]+?) -->")
HEADINGS = ("case", "equal", "error", "plain", "fast", "speed-up (95 %)", "growth", "allocations, plain -> fast")

Figures = Mapping[str, Mapping[str, Any]]
"""Case -> its row of `hotloop prove --json`."""


class Outdated(NamedTuple):
    """A figure that none of the cases it stands beside has."""

    path: Path
    line: int
    quoted: str
    true: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: `{self.quoted}`, but {self.true}"


def read(path: Path) -> dict[str, dict[str, Any]]:
    return {row["case"]: row for row in json.loads(path.read_text())} if path.is_file() else {}


def keep(path: Path, row: dict[str, Any], order: Sequence[str]) -> None:
    """Put a row in the place of the one of the same case; cases that are no longer in `order` go."""
    rows = read(path) | {row["case"]: row}
    lines = [json.dumps(rows[name]) for name in order if name in rows]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def named(figures: Iterable[str], name: str) -> list[str]:
    """The kept cases that a name, or every name of a command, fits."""
    words = name.removeprefix("hotloop prove ").split() if name.startswith("hotloop prove ") else [name]
    return [case for case in figures if any(fits(word.split("/"), case.split("/")) for word in words)]


def documents(root: Path) -> list[Path]:
    return [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md"))]


def write_tables(text: str, figures: Figures) -> str:
    def fill(found: re.Match[str]) -> str:
        names = found[2].split()
        cases = [case for case in figures if not names or any(named([case], name) for name in names)]
        return f"{found[1]}{draw_table([figures[case] for case in cases])}{found[3]}"

    return TABLE.sub(fill, text)


def draw_table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [" | ".join(HEADINGS), " | ".join(["---", "---", *["---:"] * 4, "---", "---:"])]
    lines += [" | ".join(_cells(row)) for row in rows]
    return "\n" + "".join(f"| {line} |\n" for line in lines) + "\n"


def _cells(row: Mapping[str, Any]) -> list[str]:
    equal = {True: "yes", False: "NO", None: "changes learning"}[row["equal"]]
    cells = [f"`{row['case']}`", equal, "-" if row["max_error"] is None else f"{row['max_error']:.1e}"]
    if row["speedup"] is None:
        return [*cells, *["-"] * (len(HEADINGS) - len(cells))]
    growth = row["growth"]
    return [
        *cells,
        time_words(row["seconds"]["reference"]),
        time_words(row["seconds"]["fast"]),
        f"{ratio_words(row['speedup'])}x ({ratio_words(row['low'])} to {ratio_words(row['high'])})",
        f"x{growth['factor']:.2f} ({growth['from']} to {growth['to']})" if growth else "-",
        f"{row['allocations']['reference']:,} -> {row['allocations']['fast']:,}",
    ]


def ratio_words(ratio: float) -> str:
    """Three digits, and all of those before the point."""
    digits = 0 if ratio >= 99.95 else 1 if ratio >= 9.995 else 2 if ratio >= 0.9995 else 3
    return f"{ratio:,.{digits}f}"


def time_words(seconds: float) -> str:
    unit, scale = next(((unit, scale) for unit, scale in SECONDS.items() if seconds >= scale), ("microseconds", 1e-6))
    return f"{seconds / scale:.3g} {unit}"


def find_outdated(path: Path, text: str, figures: Figures) -> Iterator[Outdated]:
    for line, block in blocks(TABLE.sub(lambda found: "\n" * found[0].count("\n"), text)):
        names = [one or other for one, other in NAME.findall(block)]
        cases = {case: figures[case] for name in names for case in named(figures, name)}
        measured = [row for row in cases.values() if row["speedup"] is not None]
        if measured:
            bound = any(other for _, other in NAME.findall(block))
            yield from (Outdated(path, line, *found) for found in _wrong_quotes(block, measured, bound))


def _wrong_quotes(block: str, rows: list[Mapping[str, Any]], with_times: bool) -> Iterator[tuple[str, str]]:
    """What is quoted and what would be true. Times belong to a case only where a comment binds them to it."""
    text = NOT_OF_A_CASE.sub("", re.sub(r"`[^`]*`", "", block))
    for found in RATIO.finditer(text):
        if not any(_agrees(found, row) for row in rows):
            yield found[0], _list(rows, lambda row: f"{ratio_words(row['speedup'])}x {_interval(row)}")
    for found in ALLOCATIONS.finditer(text):
        counts = tuple(int(part.replace(",", "")) for part in found.groups())
        if all(counts != (row["allocations"]["reference"], row["allocations"]["fast"]) for row in rows):
            yield found[0], _list(rows, lambda row: ALLOCATED.format(**row["allocations"]))
    for found in ERROR.finditer(text):
        if all(found[1] != f"{row['max_error']:.1e}" for row in rows):
            yield found[0], _list(rows, lambda row: f"error {row['max_error']:.1e}")
    for found in TIME.finditer(text) if with_times else ():
        times = [seconds / SECONDS[found[2]] for row in rows for seconds in row["seconds"].values()]
        if not any(is_rounded(found[1], time) for time in times):
            yield found[0], _list(rows, lambda row: " and ".join(map(time_words, row["seconds"].values())))


def _agrees(found: re.Match[str], row: Mapping[str, Any]) -> bool:
    pairs = zip(found.groups(), (row["speedup"], row["low"], row["high"]), strict=True)
    return all(is_rounded(quoted, true) for quoted, true in pairs if quoted is not None)


def _interval(row: Mapping[str, Any]) -> str:
    return f"({ratio_words(row['low'])} to {ratio_words(row['high'])})"


def _list(rows: Iterable[Mapping[str, Any]], words: Any) -> str:
    return "; ".join(f"{row['case']} has {words(row)}" for row in rows)


def is_rounded(quoted: str, true: float) -> bool:
    """Whether `quoted` is `true` to as many digits as it has; zeros at its end before the point may be rounding."""
    digits, decimals = quoted.replace(",", ""), len(quoted.partition(".")[2])
    if f"{true:.{decimals}f}" == digits:
        return True
    significant = len(digits.rstrip("0"))
    return decimals == 0 and significant >= 2 and float(f"{true:.{significant}g}") == float(digits)


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Table rows, list items and paragraphs, each with the number of its first line."""
    start, lines = 1, []  # type: ignore[var-annotated]
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if not line.strip() or line.lstrip().startswith(("|", "- ", "#")):
            if lines:
                yield start, "\n".join(lines)
            start, lines = number, []
        if line.strip():
            lines.append(line)


def wanted(root: Path) -> list[str]:
    """What documents name: families and cases, for `hotloop prove`."""
    words: list[str] = []
    for path in documents(root):
        text = path.read_text()
        words += [word for found in TABLE.finditer(text) for word in found[2].split()]
        for one, other in NAME.findall(TABLE.sub("", text)):
            name = one or other
            words += name.removeprefix("hotloop prove ").split() if name.startswith("hotloop prove ") else [name]
    return sorted({word for word in words if word.split("/")[0] in FAMILIES and "/" in word})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="name the cases that the documents quote, and stop")
    root = Path.cwd()
    if parser.parse_args().names:
        print("\n".join(wanted(root)))
        return 0
    figures, outdated = read(root / KEPT), list[Outdated]()
    for path in documents(root):
        text = write_tables(path.read_text(), figures)
        path.write_text(text)
        outdated += find_outdated(path.relative_to(root), text, figures)
    print("\n".join(map(str, outdated)) or "every quote is up to date")
    return 1 if outdated else 0


if __name__ == "__main__":
    raise SystemExit(main())
