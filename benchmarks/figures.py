"""Figures kept in a file, and the documents that quote them: tables are made from the file, quotes are held against it.

A document has a table where it says `<!-- prove CASE ... -->`, up to `<!-- end of prove -->`: of all kept cases that
one of the names fits, or of all. Anywhere else a figure belongs to the cases that its table row, list item or paragraph
names, in backticks or in a comment. `python -m benchmarks.figures` rewrites the tables and the plain quotes of the
documents below the folder it runs in, and lists every quote that is still out of date.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.all_cases import known
from hotloop.core.terminal import print_line
from hotloop.proof.case_files import fits
from hotloop.proof.case_rows import read_kept

KEPT = Path("docs/results/prove.json")
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
RATIO = re.compile(rf"(?<![\w.,])({NUMBER})x\b(?: \(({NUMBER}) to ({NUMBER})\))?")
SECONDS = {"s": 1.0, "ms": 1e-3, "microseconds": 1e-6}
TIME = re.compile(rf"(?<![\w.,])({NUMBER}) (s|ms|microseconds)\b")
ALLOCATIONS = re.compile(rf"allocations ({NUMBER}) -> ({NUMBER})")
ALLOCATED = "allocations {reference:,} -> {fast:,}"
ERROR = re.compile(r"error (\d\.\de-\d+)")
BOUGHT = re.compile(r"bought:?[^|;.]*(?:\.\d[^|;.]*)*")
"""What fewer updates bought: the plain program against itself, in the sibling case that takes it longest."""
TABLE = re.compile(r"(<!-- prove ?([^>]*?) ?-->\n).*?(<!-- end of prove -->)", re.DOTALL)
NAME = re.compile(r"`([^`]+)`|<!-- (?!prove|end of|compare)([^>]+?) -->")
FORMS = ("reference", "fast")
HEADINGS = ("case", "verdict", "error", "plain", "fast", "speed-up (95 %)", "growth", "allocations, plain -> fast")

Figures = Mapping[str, Mapping[str, Any]]
"""Case -> its row of `hotloop prove --json`."""


Words = Callable[[Mapping[str, Any]], str]


class Outdated(NamedTuple):
    """A figure that none of the cases it stands beside has."""

    path: Path
    line: int
    quoted: str
    true: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: `{self.quoted}`, but {self.true}"


def named(figures: Iterable[str], name: str) -> list[str]:
    """The kept cases that a name, or every name of a command, fits."""
    return [case for case in figures if any(fits(word.split("/"), case.split("/")) for word in _names(name))]


def _names(quoted: str) -> list[str]:
    """Of a command (`hotloop prove benchmarks::gae benchmarks::entropy-kl`) the cases that it names; else itself."""
    command, is_command = quoted.removeprefix("hotloop prove "), quoted.startswith("hotloop prove ")
    return [word.rpartition("::")[2] for word in command.split()] if is_command else [quoted]


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
    cells = [f"`{row['case']}`", row["verdict"], "-" if row["max_error"] is None else f"{row['max_error']:.1e}"]
    if row["speedup"] is None:
        return [*cells, *["-"] * (len(HEADINGS) - len(cells))]
    growth = row["growth"]
    return [
        *cells,
        *(time_text(row["seconds"][form]) for form in FORMS),
        f"{ratio_text(row['speedup'])}x ({ratio_text(row['low'])} to {ratio_text(row['high'])})",
        f"x{growth['factor']:.2f} ({growth['from']} to {growth['to']})" if growth else "-",
        f"{row['allocations']['reference']:,} -> {row['allocations']['fast']:,}",
    ]


def ratio_text(ratio: float) -> str:
    """Three digits, and all of those before the point."""
    digits = 0 if ratio >= 99.95 else 1 if ratio >= 9.995 else 2 if ratio >= 0.9995 else 3
    return f"{ratio:,.{digits}f}"


def time_text(seconds: float) -> str:
    unit, scale = next(((unit, scale) for unit, scale in SECONDS.items() if seconds >= scale), ("microseconds", 1e-6))
    return f"{seconds / scale:.3g} {unit}"


class Quotes:
    """A block of a document: the cases it names, and the figures it quotes of them."""

    def __init__(self, block: str, figures: Figures) -> None:
        self.block, self._figures = block, figures
        names = NAME.findall(block)
        found = {one or other: named(figures, one or other) for one, other in names}
        own = {name: cases for name, cases in found.items() if is_case(name)}
        self.one_each = bool(own) and all(len(cases) == 1 for cases in own.values())
        cases = dict.fromkeys(case for cases in (own or found).values() for case in cases)
        self.rows = [figures[case] for case in cases if figures[case]["speedup"] is not None]
        self.with_times = any(other for _, other in names)
        """Times belong to a case only where a comment binds them to it."""
        text = _blank(re.compile(r"`[^`]*`|<!--.*?-->"), block)
        self._bought = [ratio for found in BOUGHT.finditer(text) for ratio in RATIO.finditer(text, *found.span())]
        self._text = _blank(BOUGHT, text)

    def wrong(self) -> Iterator[tuple[re.Match[str], str, str]]:
        """Where, what would be true, and what to write instead where there is but one answer."""
        if not self.rows:
            return
        ratios = list(RATIO.finditer(self._text))
        in_order = self.one_each and len(ratios) == len(self.rows)
        for place, found in enumerate(ratios):
            if not any(_agrees(found, row) for row in self.rows) or (in_order and not _agrees(found, self.rows[place])):
                true = _list(self.rows, lambda row: f"{ratio_text(row['speedup'])}x {_interval(row)}")
                yield found, true, _reworded(found, self.rows[place]) if in_order else ""
        yield from self._wrong_text(ALLOCATIONS, lambda row: ALLOCATED.format(**row["allocations"]))
        yield from self._wrong_text(ERROR, lambda row: f"error {row['max_error']:.1e}")
        yield from self._wrong_bought()
        if self.with_times:
            yield from self._wrong_times()

    def _wrong_text(self, pattern: re.Pattern[str], words: Words) -> Iterator[tuple[re.Match[str], str, str]]:
        for found in pattern.finditer(self._text):
            if found[0] not in map(words, self.rows):
                yield found, _list(self.rows, words), words(self.rows[0]) if len(self.rows) == 1 else ""

    def _wrong_bought(self) -> Iterator[tuple[re.Match[str], str, str]]:
        rows = [row for row in self.rows if _bought(row, self._figures) > 1.0]
        in_order = self.one_each and len(self._bought) == len(rows)
        for place, found in enumerate(self._bought):
            if not any(is_rounded(found[1], _bought(row, self._figures)) for row in rows):
                true = _list(rows, lambda row: f"bought {ratio_text(_bought(row, self._figures))}x")
                yield found, true, f"{ratio_text(_bought(rows[place], self._figures))}x" if in_order else ""

    def _wrong_times(self) -> Iterator[tuple[re.Match[str], str, str]]:
        timed = [row for row in self.rows if row["seconds"]]
        times, seconds = list(TIME.finditer(self._text)), [row["seconds"][form] for row in timed for form in FORMS]
        in_order = len(times) == len(seconds)
        for place, found in enumerate(times) if timed else ():
            right = [is_rounded(found[1], true / SECONDS[found[2]]) for true in seconds]
            if not (right[place] if in_order else any(right)):
                words = _list(timed, lambda row: " and ".join(time_text(row["seconds"][form]) for form in FORMS))
                yield found, words, time_text(seconds[place]) if in_order else ""


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """Spaces in its place, so that all else stays where it is."""
    return pattern.sub(lambda found: re.sub(r"\S", " ", found[0]), text)


def _bought(row: Mapping[str, Any], figures: Figures) -> float:
    siblings = [figures[case] for case in figures if case.rpartition("/")[0] == row["case"].rpartition("/")[0]]
    if not row["seconds"]:
        return 1.0
    slowest = max(sibling["seconds"]["reference"] for sibling in siblings if sibling["seconds"])
    return float(slowest / row["seconds"]["reference"])


def find_outdated(path: Path, text: str, figures: Figures) -> Iterator[Outdated]:
    for line, block in blocks(_blank(TABLE, text)):
        for found, true, _ in Quotes(block, figures).wrong():
            yield Outdated(path, line + block.count("\n", 0, found.start()), found[0], true)


def write_quotes(text: str, figures: Figures) -> str:
    """Quotes brought up to date, where a block quotes one figure of each case that it names, in their order."""
    lines = text.split("\n")
    for line, block in blocks(_blank(TABLE, text)):
        wrong = sorted(Quotes(block, figures).wrong(), key=lambda quote: -quote[0].start())
        for found, _, instead in wrong:
            block = f"{block[: found.start()]}{instead or found[0]}{block[found.end() :]}"
        new = block.split("\n")
        lines[line - 1 : line - 1 + len(new)] = new
    return "\n".join(lines)


def _agrees(found: re.Match[str], row: Mapping[str, Any]) -> bool:
    pairs = zip(found.groups(), (row["speedup"], row["low"], row["high"]), strict=True)
    return all(is_rounded(quoted, true) for quoted, true in pairs if quoted is not None)


def _reworded(found: re.Match[str], row: Mapping[str, Any]) -> str:
    """The case's figures in the manner of the quote, which may be short."""
    decimals = len(found[1].partition(".")[2])

    def words(true: float) -> str:
        return f"{true:,.{decimals}f}" if 10.0 <= true < 99.5 else ratio_text(true)

    interval = f" ({words(row['low'])} to {words(row['high'])})" if found[2] else ""
    return f"{words(row['speedup'])}x{interval}"


def _interval(row: Mapping[str, Any]) -> str:
    return f"({ratio_text(row['low'])} to {ratio_text(row['high'])})"


def _list(rows: Iterable[Mapping[str, Any]], words: Words) -> str:
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
    lines: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if lines and (not line.strip() or line.lstrip().startswith(("|", "- ", "#"))):
            yield number - len(lines), "\n".join(lines)
            lines = []
        if line.strip():
            lines.append(line)


def wanted(root: Path) -> list[str]:
    """What documents name: families and cases."""
    words: list[str] = []
    for path in documents(root):
        text = path.read_text()
        words += [word for found in TABLE.finditer(text) for word in found[2].split()]
        for one, other in NAME.findall(TABLE.sub("", text)):
            words += _names(one or other)
    return sorted({word for word in words if is_case(word)})


def is_case(name: str) -> bool:
    """Whether it names cases of a family; the name of a family alone may mean many other things."""
    family, _, rest = name.partition("/")
    return family in known().about and rest != ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="name the small set and what else is quoted, and stop")
    root = Path.cwd()
    if parser.parse_args().names:
        names = dict.fromkeys([*(case.name for case in known().runnable(quick=True)), *wanted(root)])
        print_line("\n".join(f"benchmarks::{name}" for name in names))
        return 0
    figures, outdated = read_kept(root / KEPT), list[Outdated]()
    for path in documents(root):
        text = write_quotes(write_tables(path.read_text(), figures), figures)
        path.write_text(text)
        outdated += find_outdated(path.relative_to(root), text, figures)
    print_line("\n".join(map(str, outdated)) or "every quote is up to date")
    return 1 if outdated else 0


if __name__ == "__main__":
    raise SystemExit(main())
