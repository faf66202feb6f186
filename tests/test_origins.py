"""What docs/origins.md names exists, its figures are those of the results, and what it calls wrong is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from benchmarks.all_cases import known
from benchmarks.figures import ALLOCATIONS, ERROR, KEPT, RATIO, Quotes, blocks, named
from hotloop.cli.main import VERBS
from hotloop.core.workloads import workload_places
from hotloop.doctor.rules import load_rules
from hotloop.presets.named import preset_names
from hotloop.proof.case_rows import read_kept
from hotloop.workloads.durotaxis.baselines import leftmost

ROOT = Path(__file__).parents[1]
FIGURES = read_kept(ROOT / KEPT)
PAGE = (ROOT / "docs" / "origins.md").read_text()
MEASURED = [*sorted((ROOT / "docs" / "results").glob("*.md")), ROOT / "docs" / "peers.md"]
COLUMNS = "| item | what it said | in hotloop | proof | figure | exact? |"
KINDS = {"exact", "changes learning", "wrong as written", "not done", "not run", "-"}
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?"
PRESET = r"(?:cartpole|snake|sfc|topology|durotaxis|lunarlander|pendulum)-[a-z0-9-]+"


class Row(NamedTuple):
    item: str
    said: str
    ours: str
    proof: str
    figure: str
    kind: str


class Section(NamedTuple):
    name: str
    text: str
    rows: list[Row]


def _read_section(part: str) -> Section:
    name, _, text = part.partition("\n")
    lines = text[text.index(COLUMNS) :].splitlines()[2:]
    rows = [Row(*(cell.strip() for cell in line.strip("| ").split(" | "))) for line in lines if line.startswith("|")]
    return Section(name, text, rows)


SECTIONS = [_read_section(part) for part in PAGE.split("\n## ")[1:] if COLUMNS in part]
ROWS = [row for section in SECTIONS for row in section.rows]


def name_of(thing: Row | Section) -> str:
    return thing[0]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def all_called(name: str) -> list[str]:
    """All cases, also of lanes that cannot run on this machine."""
    return named([case.name for case in known().cases], name)


def cases_of(row: Row) -> list[str]:
    """What the column `proof` names beside files, commands and findings."""
    others = re.compile(r"hotloop .*|[A-Z]+\d{3}|[\w/.-]+\.(?:py|md)")
    return [name for name in quoted(row.proof) if not others.fullmatch(name)]


def is_measured(number: str, line: str) -> bool:
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", line) is not None


def ratios_in(text: str) -> list[str]:
    return re.findall(rf"(?<![\w.,])({NUMBER})x\b", text)


@pytest.mark.parametrize("section", SECTIONS, ids=name_of)
def test_a_section_counts_its_items_and_numbers_them(section: Section) -> None:
    (count,) = re.findall(r"^(\d+) items: ", section.text, flags=re.MULTILINE)
    assert [int(row.item.split()[0]) for row in section.rows] == list(range(1, int(count) + 1))


def test_there_is_a_section_for_each_of_the_five() -> None:
    assert len(SECTIONS) == 5


def test_every_row_says_what_kind_it_is() -> None:
    assert {row.kind for row in ROWS} <= KINDS


def test_nothing_about_a_gpu_is_called_exact() -> None:
    of_gpus = [row for row in ROWS if "GPU" in row.item or "GPU" in row.figure]
    assert len(of_gpus) == 5
    assert {row.kind for row in of_gpus} == {"not run"}


def test_the_page_says_first_what_exact_means_and_each_section_what_its_document_left_out() -> None:
    assert PAGE.index("Exact means equal to our own plain program") < PAGE.index("| exact? |")
    for section in SECTIONS:
        assert "**Behind the document.**" in section.text, section.name


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_cases_exist(row: Row) -> None:
    for name in cases_of(row):
        assert all_called(name), name
    for command in quoted(row.proof):
        for name in command.removeprefix("hotloop prove ").split() if command.startswith("hotloop prove ") else []:
            assert name.startswith("benchmarks"), name
            assert all_called(f"hotloop prove {name}"), name


def test_a_case_that_does_not_exist_would_be_noticed() -> None:
    assert all_called("flood-fill/10x10")
    assert not all_called("flood-fill/11x11")


def test_files_verbs_and_findings_exist() -> None:
    for name in re.findall(r"`((?:src|benchmarks|docs|tests|examples)/[^`]+)`", PAGE):
        assert (ROOT / name).is_file(), name
    for name in re.findall(r"hotloop ([a-z]+)", " ".join(quoted(PAGE))):
        assert name in VERBS or name in workload_places(), name
    codes = {rule.code for rule in load_rules()}
    for code in re.findall(r"`([A-Z]+\d{3})`", PAGE):
        assert code in codes, code


def test_presets_exist() -> None:
    presets = set(preset_names())
    named = {word for text in quoted(PAGE) for word in text.split() if re.fullmatch(PRESET, word)}
    assert named - set(known().about) - presets == set()
    assert {"snake-original-64", "sfc-like-fast", "topology-original", "durotaxis-like"} <= named


@pytest.mark.parametrize("row", [row for row in ROWS if ratios_in(row.figure)], ids=name_of)
def test_ratios_are_of_cases_that_were_measured(row: Row) -> None:
    """That each is the case's own is held by tests/benchmarks/test_figures.py, for all documents."""
    cases = cases_of(row)
    if cases:
        assert all(named(FIGURES, case) for case in cases), cases
    elif not Quotes(row.proof, FIGURES).rows:
        lines = [line for path in MEASURED for line in path.read_text().splitlines()]
        for ratio in ratios_in(row.figure):
            assert any(ratio in ratios_in(line) for line in lines), ratio


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_no_figure_is_made_up(row: Row) -> None:
    """But for ratios, allocations and errors of cases, which are held against what was measured."""
    text = "\n".join(path.read_text() for path in [*MEASURED, ROOT / "README.md"])
    figure = re.sub("`[^`]+`", "", row.figure)
    for pattern in (RATIO, ALLOCATIONS, ERROR) if Quotes(row.proof, FIGURES).rows else ():
        figure = pattern.sub("", figure)
    for number in re.findall(rf"(?<![\w.,]){NUMBER}", figure):
        assert is_measured(number, text), number


def test_ratios_outside_the_tables_stand_beside_their_case() -> None:
    prose = [block for _, block in blocks(PAGE) if ratios_in(block) and not block.startswith("|")]
    assert prose
    for block in prose:
        assert Quotes(block, FIGURES).rows, block


def test_rows_written_into_one_tensor_cannot_be_differentiated() -> None:
    """The DAG-wired network as planned: node after node into a tensor of activations made beforehand."""
    weight = torch.tensor([0.5, -0.3], requires_grad=True)
    values = torch.zeros(3, 4)
    values[0] = torch.ones(4)
    for node in (1, 2):
        values[node] = torch.tanh(weight[node - 1] * values[node - 1])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        values[2].sum().backward()


def test_a_loss_whose_forward_is_under_no_grad_teaches_nothing() -> None:
    """The Q-loss as proposed: one forward for both halves, all of it without gradients."""
    network = torch.nn.Linear(4, 2)
    with torch.no_grad():
        q, next_q = network(torch.ones(6, 4)).split(3)
    target = torch.ones(3) + 0.99 * next_q.max(1)[0]
    loss = torch.nn.functional.mse_loss(q[:, 0], target)
    with pytest.raises(RuntimeError, match="does not require grad"):
        loss.backward()


def test_a_partial_selection_takes_other_nodes_than_a_sort_where_positions_are_equal() -> None:
    """The growing graph's deletion as changed; ours takes those that the sort took."""
    draw, k, others = np.random.default_rng(0), 6, 0
    for _ in range(200):
        x = draw.integers(0, 12, 20).astype(np.float64)
        by_sorting = sorted(np.argsort(x, kind="stable")[:k].tolist())
        others += sorted(np.argpartition(x, k - 1)[:k].tolist()) != by_sorting
        assert leftmost(x, k).tolist() == by_sorting
    assert others > 0


def test_the_entropy_of_a_normal_may_be_negative() -> None:
    assert torch.distributions.Normal(0.0, 0.1).entropy().item() < 0
