"""Runs whose plain files were changed by hand or by accident: said by name, and what is whole still serves."""

from __future__ import annotations

import json
import shutil
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.cli.main import main
from hotloop.core.errors import CheckpointError, HotloopError, RunError, SettingsError
from hotloop.loop import sizes
from hotloop.runs.events import read_events
from tests.reliability.killing import FAMILIES, outcome
from tests.reliability.test_loading import change_settings
from tests.reliability.test_received_runs import Listener


@pytest.fixture(scope="module", params=["dqn-native", "ppo-native", "ppo-graphs"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A finished run, and one that has its last stretch before it."""
    preset, tree = FAMILIES[request.param]
    folder = tmp_path_factory.mktemp("changed")
    hotloop.train(hotloop.preset(preset, **{**tree, "run_dir": str(folder / "whole")}))
    stopped = shutil.copytree(folder / "whole", folder / "stopped")
    (stopped / "result.json").unlink()
    shutil.rmtree(max((stopped / "checkpoints").iterdir()))
    return folder / "whole", stopped


@pytest.fixture
def stopped(trained: tuple[Path, Path], tmp_path: Path) -> Path:
    return shutil.copytree(trained[1], tmp_path / "run")


def test_settings_changed_by_hand_are_refused_by_name(stopped: Path) -> None:
    change_settings(stopped, gamma=0.5, optimizer__learning_rate=0.125)
    with pytest.raises(
        RunError, match=r"`gamma` from 0\.\d+ to 0\.5; `optimizer\.learning_rate` from [0-9.e-]+ to 0\.125"
    ) as caught:
        hotloop.resume(stopped)
    assert "--accept-changes" in caught.value.hint
    assert not (stopped / "result.json").exists()


def test_changed_settings_that_are_accepted_are_told_and_written_down(stopped: Path) -> None:
    change_settings(stopped, gamma=0.5)
    listener = Listener()
    hotloop.resume(stopped, accept_changes=True, progress=listener)
    assert any("`gamma`" in text and "to 0.5" in text for text in listener.said)
    rows = [row for row in read_events(stopped / "events.jsonl") if row["event"] == "settings"]
    assert [row["changed"]["gamma"][1] for row in rows] == [0.5]


def test_settings_that_change_nothing_may_change(stopped: Path, trained: tuple[Path, Path]) -> None:
    change_settings(stopped, checkpoint__keep=5)
    hotloop.resume(stopped)
    assert outcome(stopped) == outcome(trained[0])


def test_a_run_of_a_version_that_kept_no_settings_resumes(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[1] / "fixtures" / "runs-v1" / "dqn"
    hotloop.resume(shutil.copytree(fixture, tmp_path / "run"))


@pytest.mark.parametrize("damage", ["deleted", "emptied", "cut off", "a byte", "a folder", "a link"])
def test_lost_event_rows_do_not_lose_the_run(damage: str, stopped: Path, trained: tuple[Path, Path]) -> None:
    events = stopped / "events.jsonl"
    content = events.read_bytes()
    events.unlink()
    if damage == "emptied":
        events.touch()
    elif damage == "cut off":
        events.write_bytes(content[: len(content) // 4])
    elif damage == "a byte":
        at = content.index(b'"progress"')
        events.write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    elif damage == "a folder":
        events.mkdir()
    elif damage == "a link":
        events.symlink_to("/dev/null")
    listener = Listener()
    hotloop.resume(stopped, progress=listener)
    assert outcome(stopped)["result"] == outcome(trained[0])["result"]  # the digest among it
    assert any("events.jsonl is damaged" in text and "are lost" in text for text in listener.said)
    rows = list(read_events(events))
    assert [row["event"] for row in rows].count("rows_lost") == 1
    assert (stopped / "events-damaged-1.jsonl").is_symlink() == (damage == "a link")
    assert (damage == "deleted") == (not (stopped / "events-damaged-1.jsonl").exists()) or damage == "a link"
    if damage == "a byte":  # the others are there still
        assert len(rows) >= len(list(read_events(trained[0] / "events.jsonl"))) - 1


BAD_RESULTS: list[dict[str, Any]] = [
    {"evaluation": None},
    {"evaluation": {"mean_return": "x"}},
    {"phases": [1]},
    {"seconds": "long"},
    {"run": 3},
    {"phases": {"act": {"seconds": 1.0}}},
]


@pytest.mark.parametrize("change", BAD_RESULTS, ids=str)
def test_a_damaged_result_is_told_and_can_be_made_again(
    change: dict[str, Any], trained: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(trained[0], tmp_path / "run")
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps(result | change))
    assert main(["resume", str(run)]) == 2
    assert "result.json is damaged" in capsys.readouterr().err
    (run / "result.json").unlink()
    hotloop.resume(run)
    assert outcome(run) == outcome(trained[0])


def test_one_absurd_number_does_not_hide_the_other_runs(
    trained: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(trained[0], tmp_path / "run")
    with (run / "events.jsonl").open("a") as file:
        file.write('{"event": "progress", "env_steps": Infinity, "mean_return": 1e999}\n')
        file.write('{"event": "progress", "env_steps": ' + "9" * 4_000 + "}\n")
    shutil.copytree(trained[0], tmp_path / "another")
    assert main(["runs", str(tmp_path), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["runs"]
    assert len(listed) == 2
    assert listed[0]["env_steps"] == listed[1]["env_steps"]


def test_a_network_that_is_not_the_checkpoints_is_refused_before_it_is_built(stopped: Path) -> None:
    """What the settings say was built first once: 2.6 GB and half a minute for `hidden = [25000, 25000]`."""
    text = (stopped / "settings.toml").read_text()
    is_graph = "durotaxis" in text
    for width in (25_000, 10**9, 10**15):
        change = {"network__graph__width": width // 16 * 16} if is_graph else {"network__hidden": [width, width]}
        change_settings(stopped, **change)
        tracemalloc.start()
        for attempt in (hotloop.load, lambda run: hotloop.resume(run, accept_changes=True)):
            with pytest.raises(CheckpointError, match="parameters, the network of its settings"):
                attempt(stopped)
        for words in (
            ["evaluate", str(stopped)],
            ["watch", str(stopped)],
            ["export", str(stopped), "--torch", "a.safetensors"],
        ):
            assert main(words) == 2
        assert "the network of its settings" in hotloop.report(stopped, write=False).html
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("preset", "change"),
    [
        ("cartpole-dqn", {"network": {"hidden": [10**6, 10**6]}}),
        ("cartpole-dqn", {"network": {"hidden": [10**30]}}),
        ("cartpole-dqn", {"network": {"torso": "topology", "topology": {"hidden": 10**9, "ring_degree": 10**8}}}),
        ("cartpole-dqn", {"batch_size": 10**11}),
        ("cartpole-ppo", {"network": {"hidden": [10**6, 10**6]}}),
        ("cartpole-ppo", {"rollout_steps": 10**10}),
        ("durotaxis-ppo", {"network": {"graph": {"width": 2**20, "feed_forward": 2**20}}}),
    ],
    ids=str,
)
def test_training_what_cannot_fit_is_refused_in_a_sentence(preset: str, change: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="of memory at least"):
        hotloop.train(hotloop.preset(preset, **change, run_dir=str(tmp_path / "run")))
    assert not (tmp_path / "run").exists()


def test_what_a_network_is_counted_as_is_what_is_built(trained: tuple[Path, Path]) -> None:
    agent = hotloop.load(trained[0])
    found = sum(parameter.numel() for parameter in agent.network.parameters())
    normalized = 8 if getattr(agent, "normalizer", None) else 0
    spec = getattr(agent, "action_spec", None) or hotloop.core.types.DiscreteActions(2)
    assert sizes.num_weights(agent.settings, agent.obs_spec, spec) == found + normalized


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 30_000) + " = 1\n",
        "\n".join(f"{'.'.join('b' * 900)}.c{number} = 1" for number in range(100)),
        "a = " + "[" * 100_000 + "\n",
        "#" * 10**6,
    ],
    ids=["dotted key", "many dotted keys", "nested lists", "a megabyte"],
)
def test_settings_that_would_stall_the_parser_are_refused_at_once(text: str, stopped: Path) -> None:
    (stopped / "settings.toml").write_text(text)
    begun = time.monotonic()
    for attempt in (hotloop.resume, hotloop.load, lambda run: hotloop.preset(str(run / "settings.toml"))):
        with pytest.raises(HotloopError):
            attempt(stopped)
    assert main(["runs", str(stopped.parent)]) == 0
    assert time.monotonic() - begun < 60
