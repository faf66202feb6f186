"""The comparison with AsyncVectorEnv runs and says what it compared; no test asserts a time."""

from __future__ import annotations

import json

import pytest

from hotloop.cli import bench
from hotloop.core.errors import SettingsError
from hotloop.proof import bench_workers


def test_a_work_nobody_knows_is_refused_with_those_there_are():
    with pytest.raises(SettingsError, match="no work `pong`") as caught:
        bench_workers.choose(["pong"])
    assert "cartpole" in caught.value.hint


def test_the_verb_steps_both_and_tells_their_ratio(capsys):
    assert bench.run(["workers", "cartpole-few", "--seconds", "0.01", "--json", "--quiet"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["work"] == "cartpole-few/2-envs-2-workers"
    assert row["library"] == "gymnasium AsyncVectorEnv"
    assert 0 < row["low"] <= row["ratio"] <= row["high"]
