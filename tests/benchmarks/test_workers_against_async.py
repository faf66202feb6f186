"""The comparison with AsyncVectorEnv runs and says what it compared; no test asserts a time."""

from __future__ import annotations

import json

import pytest

from benchmarks import workers
from hotloop.core.errors import SettingsError


def test_a_work_nobody_knows_is_refused_with_those_there_are():
    with pytest.raises(SettingsError, match="no work `pong`") as caught:
        workers.choose(["pong"])
    assert "cartpole" in caught.value.hint


def test_the_verb_steps_both_and_tells_their_ratio(capsys):
    assert workers.run(["cartpole-few", "--seconds", "0.01", "--json", "--quiet"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["work"] == "cartpole-few/2-envs-2-workers"
    assert row["library"] == "gymnasium AsyncVectorEnv"
    assert 0 < row["low"] <= row["ratio"] <= row["high"]
