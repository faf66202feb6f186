"""A second trainer on a run that is being trained is turned away, and the first does not notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.cli.main import main
from hotloop.core.errors import RunError
from tests.reliability.killing import FAMILIES, outcome


class Intruder:
    """A progress display that tries, in the middle of the run, to train it a second time in every way there is."""

    def __init__(self, settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self._settings, self._capsys = settings, capsys
        self.refusals: list[str] = []

    def say(self, text: str) -> None:
        pass

    def show(self, session: Any, timer: Any, row: dict[str, Any] | None = None) -> None:
        if row is None or self.refusals:
            return
        run_dir = self._settings.run_dir
        for attempt in (lambda: hotloop.resume(run_dir), lambda: hotloop.train(self._settings)):
            with pytest.raises(RunError) as caught:
                attempt()
            self.refusals.append(str(caught.value))
        assert main(["resume", run_dir, "--quiet"]) == 2
        self.refusals.append(self._capsys.readouterr().err)


@pytest.mark.parametrize("family", ["dqn-native", "ppo-native"])
def test_a_second_trainer_is_refused_and_the_first_goes_on(
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset, tree = FAMILIES[family]
    alone, shared = (hotloop.preset(preset, **{**tree, "run_dir": str(tmp_path / name)}) for name in "ab")
    hotloop.train(alone)
    intruder = Intruder(shared, capsys)
    hotloop.train(shared, progress=intruder)
    resumed, begun, verb = intruder.refusals
    assert "being trained" in resumed
    assert "resume" in begun or "being trained" in begun
    assert "being trained" in verb
    assert "Traceback" not in verb
    assert outcome(tmp_path / "a") == outcome(tmp_path / "b")
