"""The network as pixels, and its weights over training."""

import json

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import HotloopError
from hotloop.nets.topology.generators import small_world
from hotloop.runs.directory import Run
from hotloop.workloads.topology import draw as drawing
from hotloop.workloads.topology import verbs
from hotloop.workloads.topology.draw_history import Snapshot, animate, in_between, snapshots
from hotloop.workloads.topology.draw_picture import Limits, NetworkPainter

RED, BLUE = (178, 24, 43), (33, 102, 172)


@pytest.fixture(scope="module")
def graph():
    return small_world(4, 16, 2, 4, 0.1, 47)


def painted(graph, weight, bias, progress=None):
    numbers = np.full(len(graph.edges()), weight), np.full(len(graph.computed), bias)
    return NetworkPainter(graph).paint(*numbers, Limits(1.0, 1.0), progress)


def test_a_picture_has_even_sides_and_white_paper(graph):
    frame = painted(graph, 0.5, 0.5)
    assert frame.dtype == np.uint8
    assert frame.shape[0] % 2 == frame.shape[1] % 2 == 0  # what video codecs want
    assert (frame[0] == 255).all()


def test_positive_biases_are_red_and_negative_ones_blue(graph):
    for bias, color in ((5.0, RED), (-5.0, BLUE)):
        exact = (painted(graph, 0.0, bias) == color).all(axis=2)
        assert exact.sum() > 20 * len(graph.computed)  # most of each disc: beyond the limit the color is full


def test_a_stronger_weight_is_a_wider_and_darker_line(graph):
    ink = [(255.0 - painted(graph, weight, 0.0)).sum() for weight in (0.0, 0.5, 1.0)]
    assert ink[0] < ink[1] < ink[2]


def test_the_bar_below_shows_how_far_training_has_come(graph):
    row = painted(graph, 0.0, 0.0, progress=0.25)[-10]
    dark = (row == (36, 41, 47)).all(axis=1).sum()
    track = len(row) - 40
    assert dark == pytest.approx(track / 4, abs=1)


def test_between_two_snapshots_the_numbers_move_in_a_straight_line():
    shown = [Snapshot(0, np.array([0.0]), np.array([4.0])), Snapshot(100, np.array([10.0]), np.array([4.0]))]
    frames = list(in_between(shown, 5))
    assert [one.env_steps for one in frames] == [0, 25, 50, 75, 100]
    assert [float(one.weights[0]) for one in frames] == [0.0, 2.5, 5.0, 7.5, 10.0]
    assert {float(one.biases[0]) for one in frames} == {4.0}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("draw") / "run"
    settings = hotloop.preset(
        "topology-dqn",
        total_env_steps=400,
        learning_starts=100,
        updates_per_env_step="1/4",
        checkpoint={"every": 100, "keep": 10},
        evaluation={"every": 1_000, "episodes": 1, "final_episodes": 1},
        run_dir=str(folder),
    )
    hotloop.train(settings)
    return folder


def test_a_run_tells_its_weights_checkpoint_by_checkpoint(run_dir):
    network = hotloop.load(run_dir).network.torso.network
    shown = snapshots(Run.open(run_dir), network.graph)
    assert [one.env_steps for one in shown] == [104, 200, 304, 400]
    assert {len(one.weights) for one in shown} == {294}
    assert {len(one.biases) for one in shown} == {66}
    assert (shown[0].weights != shown[-1].weights).any()


def test_the_verb_writes_png_and_refuses_what_it_cannot_write(run_dir, tmp_path, capsys):
    assert verbs.draw([str(run_dir), "--out", str(tmp_path / "network.png"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["edges"] == 294
    assert (tmp_path / "network.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(HotloopError, match="no kind of picture"):
        verbs.draw([str(run_dir), "--out", "network.jpg"])


def test_from_python_a_run_is_drawn_and_measured(run_dir, tmp_path):
    drawn = drawing.draw(run_dir, tmp_path / "network.svg")
    assert drawn.file.read_text().startswith("<svg")
    assert (drawn.measures.edges, drawn.checkpoints) == (294, 0)


def test_a_network_of_layers_is_refused(tmp_path):
    settings = hotloop.preset(
        "cartpole-ppo", total_env_steps=64, network={"hidden": [8]}, run_dir=str(tmp_path / "run")
    )
    hotloop.train(settings)
    with pytest.raises(HotloopError, match="is made of layers"):
        drawing.draw(tmp_path / "run", tmp_path / "network.svg")


def test_an_animation_needs_two_checkpoints_and_a_run(run_dir, tmp_path, graph):
    (tmp_path / "graph.json").write_text(
        json.dumps({"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2}]})
    )
    with pytest.raises(HotloopError, match="only a run has weights over training"):
        verbs.draw([str(tmp_path / "graph.json"), "--out", str(tmp_path / "graph.mp4")])
    run = Run.open(run_dir)
    run.checkpoints = tmp_path / "none"
    with pytest.raises(HotloopError, match="kept 0 checkpoints"):
        animate(run, graph, tmp_path / "none.mp4")


def test_an_animation_is_written(run_dir, tmp_path, monkeypatch):
    pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setattr("hotloop.workloads.topology.draw_history.SECONDS", 0.4)
    assert verbs.draw([str(run_dir), "--out", str(tmp_path / "training.mp4")]) == 0
    assert (tmp_path / "training.mp4").stat().st_size > 1_000
