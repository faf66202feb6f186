"""Documents quote what was measured: tables are made from docs/results/prove.json, other quotes are held against it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.all_cases import known
from benchmarks.figures import (
    KEPT,
    blocks,
    documents,
    find_outdated,
    is_rounded,
    named,
    ratio_text,
    time_text,
    wanted,
    write_quotes,
    write_tables,
)
from hotloop.proof.case_rows import read_kept

ROOT = Path(__file__).parents[2]
FIGURES = read_kept(ROOT / KEPT)
DOCUMENTS = documents(ROOT)


def row(case: str, speedup: float = 38.71, **changes: object) -> dict:
    made = {
        "case": case,
        "equal": True,
        "verdict": "to rounding",
        "max_error": 4.1e-9,
        "speedup": speedup,
        "low": 36.4,
        "high": 41.2,
    }
    made |= {"seconds": {"fast": 24.2e-6, "reference": 1.04e-3}, "allocations": {"fast": 11, "reference": 1758}}
    return made | {"growth": {"factor": 0.65, "from": "B 32", "to": "256"}} | changes


PLANTED = {name: row(name) for name in ("dqn-update/dqn/native/b32", "gae/T128-N8", "snake-loop/basic/64")}
PLANTED["snake-loop/basic/8"] = row("snake-loop/basic/8", seconds={"fast": 1e-5, "reference": 0.26e-3})
PLANTED["gae/T128-N8"]["speedup"] = 1_382.4


def outdated(text: str) -> list[tuple[int, str]]:
    return [(found.line, found.quoted) for found in find_outdated(Path("x.md"), text, PLANTED)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_quote_is_what_was_measured(path: Path):
    found = list(find_outdated(path.relative_to(ROOT), path.read_text(), FIGURES))
    assert not found, "\n" + "\n".join(map(str, found))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_those_that_the_figures_make(path: Path):
    text = path.read_text()
    assert write_tables(text, FIGURES) == text, "run `python -m benchmarks.figures`"


def test_every_case_that_a_document_names_was_measured_and_is_equal():
    assert FIGURES
    for name in wanted(ROOT):
        assert named(FIGURES, name), name
    for case, kept in FIGURES.items():
        assert kept["equal"] is not False, case
        assert kept["speedup"] is not None, case


def test_kept_cases_exist():
    assert set(FIGURES) <= {case.name for case in known().cases}


@pytest.mark.parametrize(
    "text",
    [
        "| `dqn-update/dqn/native/b32` | 38.7x |",
        "| `dqn-update/dqn/native` | 39x (36 to 41) |",
        "| an update <!-- dqn-update/dqn/native/b32 --> | 1 ms | 24 microseconds | 39x (36 to 41) |",
        "- **gae** of `gae/T128-N8`\n  takes 1,382x or 1,400x; allocations 1,758 -> 11, error 4.1e-09",
        "`hotloop prove benchmarks::gae benchmarks/update.py::dqn-update`: 1,382x and 38.7x",
        "nobody named: 7x",
        "| `snake-loop/basic/8` | exact 39x, bought 4.0x; and more |",
        "| `gae/T128-N8` | 5.1 microseconds of something else |",
    ],
)
def test_true_quotes_are_left_alone(text: str):
    assert outdated(text) == []


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("| `dqn-update/dqn/native/b32` | 38.8x |", "38.8x"),
        ("| `dqn-update/dqn/native/b32` | 38.7x (30 to 41) |", "38.7x (30 to 41)"),
        ("| `dqn-update/dqn/native/b32` | allocations 758 -> 11 |", "allocations 758 -> 11"),
        ("| `dqn-update/dqn/native/b32` | error 4.2e-09 |", "error 4.2e-09"),
        ("| an update <!-- dqn-update/dqn/native/b32 --> | 53 microseconds |", "53 microseconds"),
        ("| `snake-loop/basic/8` | bought 5.0x |", "5.0x"),
        ("- of `gae/T128-N8` it is 1,000x", "1,000x"),
    ],
)
def test_a_wrong_quote_is_named_with_its_line(text: str, quoted: str):
    assert outdated(f"first\n\n{text}") == [(3, quoted)]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            "| `gae/T128-N8` | 7x |\n| `gae/T128-N8` | 1,382x |",
            "| `gae/T128-N8` | 1,382x |\n| `gae/T128-N8` | 1,382x |",
        ),
        (
            "- `gae/T128-N8`,\n  `dqn-update/dqn`: 7x, 8x (1 to 9)",
            "- `gae/T128-N8`,\n  `dqn-update/dqn`: 1,382x, 39x (36 to 41)",
        ),
        ("`gae/T128-N8` and `dqn-update/dqn`: 7x", "`gae/T128-N8` and `dqn-update/dqn`: 7x"),
        ("| `snake-loop/basic/8` | 2x, bought 5.0x |", "| `snake-loop/basic/8` | 39x, bought 4.00x |"),
        ("| x <!-- gae/T128-N8 --> | 3 ms | 1 ms |", "| x <!-- gae/T128-N8 --> | 1.04 ms | 24.2 microseconds |"),
        ("| `gae/T128-N8` | allocations 1 -> 2 |", "| `gae/T128-N8` | allocations 1,758 -> 11 |"),
    ],
)
def test_plain_quotes_are_brought_up_to_date(text: str, after: str):
    assert write_quotes(f"a\n\n{text}\n", PLANTED) == f"a\n\n{after}\n"


def test_the_message_says_where_what_and_what_instead():
    (found,) = find_outdated(Path("docs/x.md"), "| `gae/T128-N8` | 7x |", PLANTED)
    assert str(found) == "docs/x.md:1: `7x`, but gae/T128-N8 has 1,382x (36.4 to 41.2)"


def test_a_table_holds_the_cases_it_asks_for_and_is_not_read_as_prose():
    text = "a\n\n<!-- prove gae -->\n\nold 99x `gae/T128-N8`\n\n<!-- end of prove -->\n\nb\n"
    assert outdated(text) == []
    made = write_tables(text, PLANTED)
    assert made.startswith("a\n\n<!-- prove gae -->\n\n| case |")
    assert "`gae/T128-N8` | to rounding | 4.1e-09 | 1.04 ms | 24.2 microseconds | 1,382x (36.4 to 41.2) | x0.65" in made
    assert "dqn-update" not in made
    assert made.endswith("<!-- end of prove -->\n\nb\n")
    assert write_tables(made, PLANTED) == made
    assert "dqn-update" in write_tables("<!-- prove -->\n<!-- end of prove -->", PLANTED)


@pytest.mark.parametrize(
    ("quoted", "true", "right"),
    [
        ("15", 14.6, True),
        ("14.6", 14.64, True),
        ("350,000", 350_123.0, True),
        ("350,000", 356_000.0, False),
        ("100", 130.0, False),
        ("0.109", 0.1091, True),
    ],
)
def test_rounding(quoted: str, true: float, right: bool):
    assert is_rounded(quoted, true) is right


def test_numbers_in_text():
    assert [ratio_text(value) for value in (0.1087, 1.0, 8.456, 38.71, 1382.4)] == [
        "0.109",
        "1.00",
        "8.46",
        "38.7",
        "1,382",
    ]
    assert [time_text(value) for value in (4.4, 0.0201, 24.2e-6, 2.3e-7)] == [
        "4.4 s",
        "20.1 ms",
        "24.2 microseconds",
        "0.23 microseconds",
    ]


def test_rows_items_and_paragraphs_are_blocks():
    assert list(blocks("a\nb\n\n| c |\n| d |\n- e\n  f\n")) == [
        (1, "a\nb"),
        (4, "| c |"),
        (5, "| d |"),
        (6, "- e\n  f"),
    ]
