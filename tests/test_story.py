"""The story's commands, in their order, in an empty folder; and what they must say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.story_page import PAGE, run_page, with_answers

THINNED = {
    "--seconds 6": "--seconds 3",
    '--env-steps 2000"': '--env-steps 640" --rounds 1',
    "--seed {seed}": "--seed {seed} --env-steps 540",
    "--seeds 5": "--seeds 2",
}
"""Counts that make a command long, on every `make test`; `make slow` runs every word as it stands."""


@pytest.mark.parametrize(
    "thinned", [THINNED, pytest.param({}, marks=pytest.mark.slow)], ids=["thinned", "as it stands"]
)
def test_every_command_of_the_story_says_what_the_page_says(tmp_path: Path, thinned: dict[str, str]) -> None:
    said = run_page(tmp_path, thinned)
    doctor, same, different, compared = [text for command, text in said if command.startswith("hotloop")]
    assert "UPDATE010" in doctor
    assert "train.py:16" in doctor
    assert "identical for all" in same
    assert "the same until update 2: then `q_net.0.weight` differs" in different
    assert "faster" in compared
    page = with_answers(PAGE.read_text(), said)
    assert doctor.strip().splitlines()[0].rstrip() in page
    assert with_answers(page, said) == page


def test_the_page_shows_answers() -> None:
    text = PAGE.read_text()
    assert "identical for all" in text
    assert "the same until update 2: then `q_net.0.weight` differs" in text
