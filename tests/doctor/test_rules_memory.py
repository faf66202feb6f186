"""Rules about options of PyTorch, what is computed again and what is kept, on traces made by hand; and their meters."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hotloop.doctor.finding import expected_gain
from hotloop.doctor.recorder.learning import layers_with_modes
from hotloop.doctor.recorder.memory import fits, holder, live_graphs, shifted, stored_arrays
from hotloop.doctor.recorder.places import SourcePlaces
from hotloop.doctor.recorder.repeats import Repeats
from hotloop.doctor.recorder.sources import assignment, mentions
from hotloop.doctor.trace import Counts, Mention, StoredArray
from tests.doctor.rule_traces import call, found, judge, line, made, stack


def test_modes_that_change_nothing_are_found_at_the_line_that_switches() -> None:
    inside = "Module.train (torch/nn/modules/module.py:2830)"
    stacks = [stack(1.5, "act", "act (train.py:9)", "Module.eval (torch/nn/modules/module.py:2860)", inside)]
    trace = made(
        {"act": 8.0},
        stacks=[*stacks, stack(0.5, "act", "act (train.py:12)", inside)],
        lines=[line(9, 1.5, "act", "self.net.eval()"), line(12, 0.5, "act", "self.net.train()")],
        calls=[call("torch.Module.eval", 9, "act", 100), call("torch.Module.train", 12, "act", 100)],
    )
    finding = found("ACT004", trace)
    assert (finding.where, finding.share) == ("train.py:9", pytest.approx(0.2))
    assert judge("ACT004", replace(trace, counts=Counts(mode_layers=1))) is None, "a layer of dropout"


def test_layers_that_ask_for_their_mode_are_counted() -> None:
    class Noisy(torch.nn.Linear):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return super().forward(rows) + (torch.rand(1) if self.training else 0)

    plain = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.LayerNorm(2))
    assert layers_with_modes(torch.nn.Module, [plain]) == 0
    modal = torch.nn.Sequential(plain, torch.nn.Dropout(), torch.nn.BatchNorm1d(2), Noisy(2, 2))
    assert layers_with_modes(torch.nn.Module, [plain, modal]) == 3


def test_anomaly_detection_is_found_where_it_was_switched_on() -> None:
    frames = ("loss (train.py:9)", "Linear.forward (torch/nn/linear.py:3)", "format_stack (torch/fx/traceback.py:90)")
    trace = made(
        {"update": 8.0},
        stacks=[stack(5.0, "update", *frames)],
        calls=[call("torch.format_stack", 9, "update", 40)],
        update_parts={"backward": 2.0},
        mentions=(Mention(name="set_detect_anomaly", where="train.py:2"),),
    )
    finding = found("UPDATE010", trace)
    assert finding.where == "train.py:2"
    assert "4 times per update from your own lines" in finding.evidence
    assert finding.share == pytest.approx(0.5 + 0.35 * 0.2)
    longer = replace(trace, stacks=tuple(replace(one, seconds=8.0) for one in trace.stacks))
    assert found("UPDATE010", longer).share == pytest.approx(0.8 * trace.share("act", "update"))
    assert judge("UPDATE010", made({"update": 8.0}, mentions=trace.mentions)) is None, "switched off again"


def test_a_diagonal_covariance_is_found_and_its_checks_are_not_counted_twice() -> None:
    mvn = ("act (train.py:9)", "MultivariateNormal.__init__ (torch/distributions/multivariate_normal.py:150)")
    checks = (*mvn, "Distribution.__init__ (torch/distributions/distribution.py:70)")
    lines = [line(9, 5.0, "act", "policy = MultivariateNormal(mean, self.cov)")]
    stacks = [stack(3.0, "act", *mvn), stack(2.0, "act", *checks)]
    counted = Counts(env_steps=100, env_calls=100, updates=10, diagonal_covariances=100)
    trace = made({"act": 6.0}, lines=lines, stacks=stacks, counted=counted)
    finding = found("UPDATE012", trace)
    assert finding.where == "train.py:9"
    assert finding.expected_gain == pytest.approx(expected_gain(0.5, 3))
    assert judge("UPDATE011", trace) is None
    full = made({"act": 6.0}, lines=lines, stacks=stacks)
    assert judge("UPDATE012", full) is None
    assert found("UPDATE011", full).share == pytest.approx(0.2)


def test_recompiling_is_told_from_the_first_compilation() -> None:
    frames = ("loss (train.py:9)", "_compile (torch/_dynamo/convert_frame.py:700)")
    counts = Counts(env_steps=1000, env_calls=1000, updates=100, compilations=20)
    compile_line = (Mention(name="torch.compile", where="train.py:3"),)
    more = {"stacks": [stack(6.0, "update", *frames)], "mentions": compile_line}
    finding = found("UPDATE013", made({"update": 8.0}, counts=counts, **more))
    assert finding.where == "train.py:3"
    assert finding.evidence.startswith("20 graphs were compiled in 10.0 s of the loop")
    assert finding.expected_gain == pytest.approx(2.5, rel=0.01)
    once = Counts(env_steps=1000, env_calls=1000, updates=100, compilations=2)
    assert judge("UPDATE013", made({"update": 8.0}, counts=once, **more)) is None


def test_forwards_that_repeat_others_are_counted_against_all() -> None:
    calls = [call("repeated:forward", 9, "update", 10)]
    finding = found("UPDATE014", made({"update": 8.0}, calls=calls, update_parts={"forward": 4.0}))
    assert finding.where == "train.py:9"
    assert "10 of 20 forwards while the loop learns repeat an earlier one" in finding.evidence
    assert finding.share == pytest.approx(0.2)
    inside = (line(700, 4.0, "update", "q = self.model(batch)"),)
    assert judge("UPDATE014", made({"update": 8.0}, calls=calls, update_parts={"forward": 4.0}, beneath=inside)) is None
    few = [call("repeated:forward", 9, "update", 2)]
    assert judge("UPDATE014", made({"update": 8.0}, calls=few, update_parts={"forward": 4.0})) is None


def test_backwards_that_repeat_others_are_counted_too() -> None:
    counted = Counts(env_steps=100, env_calls=100, updates=10, backwards=20)
    calls = [call("repeated:backward", 9, "update", 10)]
    trace = made({"update": 8.0}, calls=calls, update_parts={"backward": 4.0}, counted=counted)
    assert found("UPDATE014", trace).share == pytest.approx(0.2)


def test_frames_in_floats_are_weighed_by_storing_and_sampling() -> None:
    frames = StoredArray(
        name="Replay.frames", dtype="float64", shape=(1000, 84, 84), bytes=56_448_000, fits="uint8", where="train.py:5"
    )
    finding = found("STORE009", made({"store-and-sample": 6.0}, stored=(frames,)))
    assert finding.where == "train.py:5"
    assert "holds float64 where uint8 holds the same: 56.4 MB instead of 7.1" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.6, 2))
    small = StoredArray(name="Replay.frames", dtype="uint8", shape=(1000, 84, 84), bytes=7_056_000)
    assert judge("STORE009", made({"store-and-sample": 6.0}, stored=(small,))) is None


def test_graphs_kept_alive_are_found_by_what_is_left_at_the_end() -> None:
    kept = {"live_graphs": 100, "minor_faults": 25_000, "page_seconds": 1e-5, "computed_seconds": 1.0}
    counts = Counts(
        env_steps=1000, env_calls=1000, updates=100, resident_growth=100_000_000, graph_holder="values", **kept
    )
    mention = (Mention(name="append:values", where="train.py:9"),)
    finding = found("GROW002", made({"update": 8.0}, counts=counts, mentions=mention))
    assert finding.where == "train.py:9"
    assert "100 tensors with their graphs were alive after 100 updates; memory grew by 100 MB" in finding.evidence
    assert finding.share == pytest.approx(0.25)
    assert judge("GROW002", made({"update": 8.0})) is None


def test_pages_from_disk_are_weighed_by_how_long_the_loop_slept() -> None:
    counts = Counts(env_steps=1000, env_calls=1000, updates=100, major_faults=500, asleep_seconds=4.0)
    finding = found("MACHINE006", made({"store-and-sample": 6.0}, counts=counts))
    assert (
        finding.evidence
        == "500 pages of memory had to be read from disk in 10.0 s of the loop, which slept 40 % of that time."
    )
    assert finding.expected_gain == pytest.approx(1 / 0.6, rel=0.01)
    assert judge("MACHINE006", made({"store-and-sample": 6.0})) is None


def test_pages_from_disk_on_a_busy_machine_are_weighed_by_the_wall_clock() -> None:
    """4 s asleep, 6 computed, 12 in the queue: a second of computing takes three, and 1 s is the system's for pages."""
    counts = Counts(env_steps=1000, env_calls=1000, updates=100, major_faults=40_000, asleep_seconds=4.0, crowding=3.0)
    trace = made({"store-and-sample": 6.0}, counts=counts)
    queued = replace(trace, phases=trace.phases | {"queued": 12.0}, seconds=24.0, clock="processor")
    finding = found("MACHINE006", queued)
    assert finding.expected_gain == pytest.approx(22 / (3 * 5), rel=0.01)
    assert "By the wall clock" in finding.evidence


class Buffer:
    def __init__(self) -> None:
        self.frames = np.random.default_rng(0).integers(0, 256, (700, 40, 40)).astype(np.float64)
        self.next_frames = np.roll(self.frames, -1, axis=0)
        self.heat = np.random.default_rng(0).random((700, 40, 40))
        self.small = np.zeros((2, 2, 2))


def test_large_arrays_are_found_with_what_they_fit_into() -> None:
    buffer = Buffer()
    found = {row["name"]: row for row in stored_arrays(gc.get_objects())}
    assert {name for name in found if name.startswith("Buffer.")} == {
        f"Buffer.{name}" for name in ("frames", "next_frames", "heat")
    }
    assert (found["Buffer.frames"]["fits"], found["Buffer.frames"]["twin"]) == ("uint8", "next_frames")
    assert found["Buffer.heat"]["fits"] == ""
    assert not shifted(np, buffer.frames, buffer.heat)
    assert fits(np, np.zeros((700, 40, 40))) == "", "all 0: nothing was stored yet"


class Watched:
    begun, over = True, False
    faults = None

    def off_main_thread(self) -> bool:
        return False


def test_repeats_are_what_has_the_same_bytes_and_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.Module, "__call__", torch.nn.Module.__call__)
    monkeypatch.setattr(torch.Tensor, "backward", torch.Tensor.backward)
    repeats = Repeats(SourcePlaces(__file__))
    repeats.watch, repeats._counting = Watched(), True  # type: ignore[assignment]
    repeats.arrive(torch)
    network, obs = torch.nn.Sequential(torch.nn.Linear(4, 2)), torch.randn(8, 4)
    loss = (network(obs) ** 2).mean() + network(obs.clone()).mean()  # the second repeats the first
    network(obs + 1)
    loss.backward(retain_graph=True)
    loss.backward()
    repeats.on_update(0.0)
    network(obs)  # the weights may have changed
    dropping = torch.nn.Sequential(torch.nn.Dropout())
    dropping(obs), dropping(obs)  # each differs
    repeats.on_update(0.0)
    trace: dict[str, Any] = {}
    repeats.add_to(trace)
    assert {(row["name"], row["phase"], row["count"]) for row in trace["calls"]} == {
        ("repeated:forward", "update", 1),
        ("repeated:backward", "update", 1),
    }
    assert all(row["where"].startswith("test_rules_memory.py:") for row in trace["calls"])


def test_objects_that_mind_being_looked_at_are_not() -> None:
    class ReplayProxy:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("touched")

    kept = ReplayProxy()
    assert list(stored_arrays([kept])) == []


def test_tensors_with_graphs_are_found_with_the_list_that_holds_them() -> None:
    class Learner:
        def __init__(self) -> None:
            self.kept: list[torch.Tensor] = []

    learner, weight = Learner(), torch.ones(3, requires_grad=True)
    for step in range(30):
        learner.kept.append((weight * step).sum())
    objects = gc.get_objects()
    graphs = [one for one in live_graphs(objects) if any(one is kept for kept in learner.kept)]
    assert len(graphs) == 30
    assert holder(graphs, objects) == "kept"
    assert live_graphs([one.detach() for one in learner.kept]) == []


def test_lines_that_set_something_up_are_found_in_the_source(tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text(
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "torch.autograd.set_detect_anomaly(True)\n"
        "fast = torch.compile(net)\n"
        "class Replay:\n"
        "    def __init__(self):\n"
        "        self.frames = 1\n"
        "    def add(self, value):\n"
        "        self.values.append(value)\n"
        "        self.numbers.append(float(value))\n"
        "        re.compile('x')\n"
        "train(env,\n"
        "    test_step_num_episodes=100, eval_env=env)\n"
    )
    assert sorted(mentions(str(source)), key=lambda one: one[1]) == [
        ("set_detect_anomaly", 3),
        ("torch.compile", 4),
        ("append:values", 9),
        ("evaluation", 13),
    ]
    assert assignment(str(source), "Replay", "frames") == 7
    assert assignment(str(source), "Replay", "nothing") == 0
