"""NaN and infinity wherever they appear: stopped before the next step, named, kept, repeated; or gone back from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hotloop
from hotloop.cli.main import main
from hotloop.core.errors import CheckpointError, NonFiniteError, RunError
from hotloop.lanes.nonfinite import NonFiniteTensorError
from hotloop.loop import failure
from hotloop.loop.rerun_failure import repeat_failure
from hotloop.runs import checkpoint
from hotloop.runs.directory import Run
from tests.loop.injections import BATCH, ROLLOUT, Injection, settings_for
from tests.loop.small_runs import Interrupt, rows, small

NAN, INFINITY = float("nan"), float("inf")
FEW_ROLLOUTS = {"dqn": 60, "ppo": 7, "graphs": 7}
POINTS = [
    ("dqn", "native", "parameter", NAN),
    ("dqn", "native", "reward", INFINITY),
    ("dqn", "native", "env", NAN),
    ("dqn", "eager", "target parameter", INFINITY),
    ("dqn", "eager", "next_obs", NAN),
    ("ppo", "native", "parameter", -INFINITY),
    ("ppo", "native", "reward", NAN),
    ("ppo", "eager", "obs", INFINITY),
    ("ppo", "eager", "advantage", NAN),
    ("graphs", "eager", "parameter", NAN),
    ("graphs", "eager", "reward", INFINITY),
]
MANY = 100


def all_finite(state: Any) -> bool:
    if isinstance(state, Mapping):
        return all(all_finite(value) for value in state.values())
    return not isinstance(state, np.ndarray) or state.dtype.kind != "f" or bool(np.isfinite(state).all())


def check_point(folder: Path, settings: Any, injection: Injection) -> None:
    """A run with one spoiled number: stopped, named; its checkpoints are finite; its bundle repeats the naming."""
    with pytest.raises(NonFiniteTensorError) as caught:
        hotloop.train(settings, progress=injection)
    error, place = caught.value, injection.place
    assert error.first.startswith({"env": "obs"}.get(place, place)), error.first
    assert error.first in error.message
    found = checkpoint.newest(folder / "checkpoints", warn=lambda text: None)
    assert found is not None
    assert all_finite({name: found[1][name] for name in ("learner", "collector", "envs", "metrics")})
    if not place.endswith("parameter"):
        assert all_finite(error.failed.state)
    answer = repeat_failure(Run.open(folder))
    assert answer["first"] == answer["named"] == error.first
    assert [row["not_finite"] > 0 for row in answer["tensors"]] == [False] * (len(answer["tensors"]) - 1) + [True]


@pytest.mark.parametrize(("family", "lane", "place", "value"), POINTS)
def test_a_spoiled_number_stops_the_run_is_named_and_can_be_repeated(
    tmp_path: Path, family: str, lane: str, place: str, value: float
) -> None:
    injection = Injection(place, FEW_ROLLOUTS[family], value)
    check_point(tmp_path / "run", settings_for(family, lane, tmp_path), injection)


@pytest.mark.slow
@pytest.mark.parametrize("point", range(MANY))
def test_a_number_spoiled_anywhere_stops_the_run_is_named_and_can_be_repeated(tmp_path: Path, point: int) -> None:
    draw = np.random.default_rng(point)
    family = str(draw.choice(["dqn", "ppo", "graphs"]))
    lane = "eager" if family == "graphs" else str(draw.choice(["eager", "native"]))
    places = ["parameter", *(("env", "target parameter", *BATCH) if family == "dqn" else ROLLOUT)]
    if family == "graphs":
        places.remove("outputs")
    place = str(draw.choice(places))
    # an infinite next observation can leave every Q finite: what an env answers is looked at before it is stored
    value = NAN if place == "next_obs" else float(draw.choice([NAN, INFINITY, -INFINITY]))
    iteration = int(draw.integers(40, 140)) if family == "dqn" else int(draw.integers(5, 19))
    injection = Injection(place, iteration, value, seed=point)
    check_point(tmp_path / "run", settings_for(family, lane, tmp_path, seed=point), injection)


def test_an_observation_that_an_env_spoils_is_named_with_its_env(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match=r"`obs` of env 7 is NaN or infinite after 480 env steps"):
        hotloop.train(small("dqn", tmp_path), progress=Injection("env", 60, seed=7))
    assert repeat_failure(Run.open(tmp_path / "run"))["update"] == 0


@pytest.mark.parametrize("family", ["dqn", "ppo"])
@pytest.mark.parametrize(("lane", "first"), [("eager", "step length"), ("native", "parameter")])
def test_a_learning_rate_that_is_too_large_is_told_by_its_step_or_by_the_parameters_it_leaves(
    tmp_path: Path, family: str, lane: str, first: str
) -> None:
    settings = settings_for(family, lane, tmp_path, optimizer={"learning_rate": 3e38, "max_grad_norm": 0.0})
    with pytest.raises(NonFiniteTensorError, match=f"first of all: {first}"):
        hotloop.train(settings)
    assert repeat_failure(Run.open(tmp_path / "run"))["first"].startswith(first)


def test_on_other_devices_nothing_moves_and_the_next_log_row_tells(tmp_path: Path) -> None:
    class Elsewhere(Injection):
        def show(self, session: Any, timer: Any, row: dict[str, Any] | None = None) -> None:
            session.learner.lane.groups["online"].on_host = False
            self.session = session
            super().show(session, timer, row)

    progress = Elsewhere("reward", 60)
    with pytest.raises(NonFiniteError, match="loss"):
        hotloop.train(settings_for("dqn", "eager", tmp_path), progress=progress)
    assert all_finite(progress.session.learner.lane.state())
    answer = repeat_failure(Run.open(tmp_path / "run"))
    assert (answer["first"], answer["batch_kept"]) == ("", False)


@pytest.mark.parametrize("part", ["mean", "square"])
def test_no_checkpoint_is_made_of_a_learner_that_is_not_finite(tmp_path: Path, part: str) -> None:
    class AtTheEnd(Injection):
        def inject(self, session: Any) -> None:
            state = session.learner.lane.state()
            state[part][0] = np.nan
            session.learner.lane.load_state(state)

    with pytest.raises(NonFiniteError, match=f"`{part}` became NaN"):
        hotloop.train(small("dqn", tmp_path), progress=AtTheEnd("", 150))


ROLLBACKS = [("dqn", "native", "reward", 60), ("dqn", "eager", "parameter", 20), ("ppo", "native", "obs", 7)]
ROLLBACKS += [("ppo", "eager", "env", 3), ("graphs", "eager", "reward", 7)]


@pytest.mark.parametrize(("family", "lane", "place", "iteration"), ROLLBACKS)
def test_a_run_goes_back_once_draws_anew_and_ends_and_resumes_exactly(
    tmp_path: Path, family: str, lane: str, place: str, iteration: int
) -> None:
    more = {"normalize": {"obs": True, "reward": True}} if family == "ppo" else {}

    def settings(name: str) -> Any:
        return settings_for(family, lane, tmp_path, name, on_nan="rollback", **more)

    untouched = hotloop.train(settings("untouched"))
    whole = hotloop.train(settings("whole"), progress=Injection(place, iteration))
    assert whole["env_steps"] == untouched["env_steps"]
    assert whole["digest"] != untouched["digest"]
    events = [row for row in rows(whole["run"]) if row["event"] == "rollback"]
    assert len(events) == 1
    assert events[0]["env_steps"] < events[0]["reached_env_steps"]
    env_steps = [row["env_steps"] for row in rows(whole["run"]) if "env_steps" in row]
    assert env_steps == sorted(env_steps)  # what was logged after the checkpoint is gone

    class Both(Injection):
        """The same, and broken off soon after."""

        def inject(self, session: Any) -> None:
            super().inject(session)
            self.interrupt = Interrupt(3)

        def show(self, session: Any, timer: Any, row: dict[str, Any] | None = None) -> None:
            super().show(session, timer, row)
            if self.times == 0 and session.rollbacks:
                self.interrupt.show(session, timer, row)

    with pytest.raises(ZeroDivisionError):
        hotloop.train(settings("broken"), progress=Both(place, iteration))
    assert hotloop.resume(tmp_path / "broken")["digest"] == whole["digest"]
    assert rows(tmp_path / "broken") == rows(whole["run"])


@pytest.mark.parametrize(("family", "lane"), [("dqn", "native"), ("ppo", "eager")])
def test_the_second_time_it_stops(tmp_path: Path, family: str, lane: str) -> None:
    settings = settings_for(family, lane, tmp_path, on_nan="rollback")
    with pytest.raises(NonFiniteTensorError, match="first of all: reward"):
        hotloop.train(settings, progress=Injection("reward", FEW_ROLLOUTS[family], times=2))
    assert [row["event"] for row in rows(tmp_path / "run")].count("rollback") == 1
    assert repeat_failure(Run.open(tmp_path / "run"))["first"] == "reward"


def test_going_back_counts_after_a_resume(tmp_path: Path) -> None:
    settings = settings_for("dqn", "native", tmp_path, on_nan="rollback")

    class Killed(Injection):
        def show(self, session: Any, timer: Any, row: dict[str, Any] | None = None) -> None:
            if session.rollbacks:
                raise ZeroDivisionError
            super().show(session, timer, row)

    with pytest.raises(ZeroDivisionError):
        hotloop.train(settings, progress=Killed("reward", 60))
    with pytest.raises(NonFiniteTensorError):
        hotloop.resume(tmp_path / "run", progress=Injection("reward", 60))


def test_envs_that_save_no_state_are_made_anew_when_a_run_goes_back(tmp_path: Path) -> None:
    env = {"id": "CartPole-v1", "num_envs": 2}
    settings = small("dqn", tmp_path, env=env, on_nan="rollback", n_step=2)
    assert hotloop.train(settings, progress=Injection("reward", 300))["env_steps"] == 1_200


def test_what_cannot_be_kept_does_not_hide_what_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise RunError("the disk is full")

    monkeypatch.setattr(failure.checkpoint, "save", full)
    progress = Injection("reward")
    said: list[str] = []
    progress.say = said.append  # type: ignore[method-assign]
    with pytest.raises(NonFiniteTensorError, match="first of all: reward"):
        hotloop.train(small("dqn", tmp_path), progress=progress)
    assert any("disk is full" in text for text in said)


def test_the_verb_prints_what_became_not_finite_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NonFiniteTensorError) as caught:
        hotloop.train(small("dqn", tmp_path), progress=Injection("reward"))
    assert f"hotloop debug-nan '{tmp_path / 'run'}'" in caught.value.hint
    assert main(["debug-nan", str(tmp_path / "run")]) == 0
    assert "first  reward" in capsys.readouterr().out
    assert main(["debug-nan", str(tmp_path / "run"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"schema": 1, **repeat_failure(tmp_path / "run")}
    assert (answer["first"], answer["lane"], answer["update"]) == ("reward", "native", caught.value.failed.update)
    assert main(["replay", str(tmp_path / "run"), "--json"]) == 0  # the verb's former name
    assert json.loads((said := capsys.readouterr()).out) == answer
    assert said.err == "hint: `hotloop replay` is now `hotloop debug-nan`\n"


def test_the_verb_says_so_where_nothing_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hotloop.train(small("dqn", tmp_path))
    assert main(["debug-nan", str(tmp_path / "run")]) == 2
    assert "is finished and has no failed update" in capsys.readouterr().err
    assert main(["debug-nan", str(tmp_path / "nowhere")]) == 2


def test_a_damaged_bundle_is_told(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteTensorError):
        hotloop.train(small("dqn", tmp_path), progress=Injection("reward"))
    folder = tmp_path / "run" / "failure"
    state, meta = checkpoint.load(folder)
    file = folder / "batch.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(CheckpointError, match="batch"):
        repeat_failure(Run.open(tmp_path / "run"))
    failure.remove_folder(folder)
    state["lane"]["online"] = state["lane"]["online"][:-1]
    checkpoint.save(tmp_path / "run", "failure", state, meta)
    with pytest.raises(CheckpointError, match="does not hold a failed update"):
        repeat_failure(Run.open(tmp_path / "run"))
