"""Pictures of graphs: every node and edge is there, by its number; the verb measures and refuses."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import networkx
import numpy as np
import pytest

import hotloop
from hotloop.core.errors import HotloopError
from hotloop.nets.topology.generators import dense, small_world
from hotloop.nets.topology.graph import make_topology, measure
from hotloop.viewing.draw_network import color, draw_network, lay_out, limit_of
from hotloop.workloads.topology import verbs


def test_colors_diverge_from_grey():
    assert color(0.0, 2.0) == "#d6d6d6"
    assert color(2.0, 2.0) == color(9.0, 2.0) == "#b2182b"
    assert color(-2.0, 2.0) == "#2166ac"
    assert limit_of(np.array([0.0, 0.0])) == 1.0
    assert limit_of(np.array([])) == 1.0


def test_levels_stand_from_left_to_right_and_no_two_nodes_on_each_other():
    graph = small_world(4, 64, 2, 8, 0.1, 47)
    place = {node: number for number, node in enumerate(graph.nodes)}
    edges = [(place[source], place[target]) for source, target in graph.edges()]
    layout = lay_out(graph.levels(), edges)
    assert all(layout.x[source] < layout.x[target] for source, target in edges)
    assert len(set(zip(layout.x.tolist(), layout.y.tolist(), strict=True))) == 70
    assert layout.y.min() > 40
    assert layout.y.max() < layout.height - 40


@pytest.mark.parametrize("graph", [small_world(4, 16, 2, 4, 0.3, 1), dense(3, (8, 8), 2), dense(1, (), 1)])
def test_a_picture_is_valid_xml_with_every_node_and_edge(graph):
    weights, biases = np.linspace(-1, 1, graph.num_edges), np.linspace(-1, 1, len(graph.computed))
    picture = ElementTree.fromstring(draw_network(graph, weights, biases, "a < b", "c & d"))
    tags = [element.tag.partition("}")[2] for element in picture.iter()]
    assert tags.count("circle") == len(graph.nodes)
    assert tags.count("path") == graph.num_edges


def test_names_of_nodes_are_text_and_never_markup():
    graph = make_topology(["<script>", "b"], [("<script>", "b")], ["<script>"], ["b"])
    text = draw_network(graph, np.ones(1), np.ones(1), "<b>", "")
    ElementTree.fromstring(text)
    assert "<script>" not in text


def test_measures_of_a_triangle_and_of_a_path():
    triangle = measure(make_topology("abc", [("a", "b"), ("b", "c"), ("a", "c")], "a", "c"))
    assert (triangle.clustering, triangle.path_length) == (1.0, 1.0)
    assert (triangle.nodes, triangle.edges, triangle.parameters, triangle.levels) == (3, 3, 5, 3)
    path = measure(make_topology("abc", [("a", "b"), ("b", "c")], "a", "c"))
    assert path.clustering == 0.0
    assert path.path_length == pytest.approx(4 / 3)  # 1, 1 and 2


def test_a_small_world_is_one_by_its_measure():
    assert measure(small_world(4, 64, 2, 8, 0.1, 47)).sigma > 2


def graph_file(folder: Path) -> Path:
    graph = networkx.DiGraph([("in", "mid"), ("mid", "out"), ("in", "out")])
    file = folder / "graph.json"
    file.write_text(json.dumps(networkx.node_link_data(graph, edges="edges")))
    return file


def test_the_verb_draws_a_graph_file(tmp_path: Path, capsys):
    assert verbs.draw([str(graph_file(tmp_path)), "--out", str(tmp_path / "net.svg"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["nodes"] == 3
    assert answer["clustering"] == 1.0
    assert (tmp_path / "net.svg").read_text().startswith("<svg")


def test_the_verb_draws_a_run(tmp_path: Path, capsys):
    short = {"total_env_steps": 200, "learning_starts": 100, "evaluation": {"episodes": 1, "final_episodes": 1}}
    hotloop.train(hotloop.preset("topology-dqn", **short, run_dir=str(tmp_path / "run")))
    assert verbs.draw([str(tmp_path / "run"), "--out", str(tmp_path / "net.svg")]) == 0
    assert re.search(r"nodes +70, 64 levels", capsys.readouterr().out)
    assert len(re.findall("<circle", (tmp_path / "net.svg").read_text())) == 70


def test_the_verb_refuses_what_it_cannot_draw(tmp_path: Path):
    file = graph_file(tmp_path)
    with pytest.raises(HotloopError, match="cannot write"):
        verbs.draw([str(file), "--out", str(tmp_path / "no" / "net.svg")])
    with pytest.raises(HotloopError):
        verbs.draw([str(tmp_path / "nowhere")])
    with pytest.raises(HotloopError, match="cannot read"):
        verbs.draw([str(tmp_path / "nowhere.json")])
    short = {"total_env_steps": 200, "learning_starts": 100, "evaluation": {"episodes": 1, "final_episodes": 1}}
    hotloop.train(hotloop.preset("cartpole-dqn", **short, run_dir=str(tmp_path / "layers")))
    with pytest.raises(HotloopError, match="made of layers"):
        verbs.draw([str(tmp_path / "layers"), "--out", str(tmp_path / "net.svg")])
