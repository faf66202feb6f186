"""What the documents promise runs: the README's example, the scripts in examples/, the commands and links."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.cli.main import VERBS
from hotloop.core.workloads import workload_named
from tests import api_page

ROOT = Path(__file__).parents[1]
OF_THE_EXAMPLE = "corridor"
"""The workload of examples/own_workload."""
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_example_in_the_readme_runs(run_folder: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 6
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    mean_return, action = answer.stdout.split()
    assert 0 < float(mean_return) <= 500
    assert action in "01"


@pytest.mark.parametrize(
    "page", ["parts", "learners", "own-loop", "recipes", "sb3", "coming-from-sb3", "coming-from-cleanrl"]
)
def test_the_blocks_of_a_page_run_in_their_order(page: str, run_folder: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(), flags=re.DOTALL)
    assert len(blocks) >= 3
    exec("\n".join(blocks), {"__name__": page})


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(script: Path, run_folder: Path) -> None:
    subprocess.run([sys.executable, str(script)], check=True, capture_output=True)


def test_the_fast_example_is_the_plain_one_but_for_eight_lines() -> None:
    plain, fast = ((ROOT / "examples" / f"{name}_dqn.py").read_text().splitlines() for name in ("plain", "faster"))
    new = [line for line in difflib.ndiff(plain, fast) if line.startswith("+ ")]
    assert len(new) <= 8
    loop = plain.index("    obs, _ = env.reset(seed=arguments.seed)")
    assert plain[loop:] == fast[-len(plain[loop:]) :]  # the loop itself is the same


@pytest.mark.parametrize("name", ["algorithms.md", "environments.md"])
def test_files_and_commands_of_a_guide_run_in_their_order(name: str, tmp_path: Path) -> None:
    words = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    text = (ROOT / "docs" / name).read_text()
    files = re.findall(r"^```python (\w+\.py)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    for file, code in files:
        (tmp_path / file).write_text(code)
    commands = "".join(re.findall(r"^```sh\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)).splitlines()
    assert files
    assert commands
    for command in commands:
        answer = subprocess.run(
            command, shell=True, cwd=tmp_path, env=os.environ | words, capture_output=True, text=True
        )
        assert answer.returncode == 0, f"{command}\n{answer.stdout}\n{answer.stderr}"


def test_the_api_page_is_what_the_docstrings_say() -> None:
    assert api_page.PAGE.read_text() == api_page.page(), "`python -m tests.api_page` writes it anew"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere_and_verbs_exist(document: Path) -> None:
    text = document.read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target
    for verb, then in re.findall(r"(?:`|^)hotloop ([a-z]+(?:-[a-z]+)*)(?: ([a-z]+))?", text, flags=re.MULTILINE):
        workload = workload_named(verb)
        assert verb in {*VERBS, OF_THE_EXAMPLE} or (workload is not None and (not then or then in workload.verbs)), verb


def test_files_named_in_the_reading_order_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text[text.index("## Reading order") :].partition("\n## ")[0]
    names = [name for name in re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", section) if not name.startswith("tests/")]
    assert len(names) > 20
    for name in names:
        assert (ROOT / "src" / "hotloop" / name).is_file(), name


def test_the_index_leads_to_every_page_and_every_page_back() -> None:
    index = ROOT / "docs" / "README.md"
    pages = sorted(path for path in (ROOT / "docs").rglob("*.md") if path != index)
    linked = {
        (index.parent / target).resolve() for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", index.read_text())
    }
    assert not set(pages) - linked, "add the page to docs/README.md"
    for page in pages:
        back = f"[All pages]({os.path.relpath(index, page.parent)})"
        assert back in page.read_text(), f"{page.name}: put `{back}` under its title"


def test_the_readme_is_little_more_than_one_screen() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 100
    assert len(re.findall(r"\[[^]]+\]\(docs/", text.partition("## Where next")[2])) == 6


def test_no_file_was_committed_in_the_middle_of_a_merge() -> None:
    files = [
        path for folder in ("docs", "src", "tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*")
    ]
    for path in [*DOCUMENTS, *(path for path in files if path.suffix in (".md", ".py", ".toml", ".js", ".css"))]:
        lines = path.read_text().splitlines()
        assert not [line for line in lines if re.match(r"(<{7}|>{7}|\|{7}) ", line)], path
