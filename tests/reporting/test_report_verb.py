"""`hotloop report` on runs that were trained for it."""

import base64
import json
import shutil
import struct
import zlib

import pytest

import hotloop
from hotloop.cli.main import main
from hotloop.reporting.agent import MOST_FRAMES, _evenly
from tests.reporting.seen_page import Seen, require_harmless

TINY = ["--total-env-steps", "600", "--learning-starts", "100", "--log-every", "100", "--quiet"]
TINY += ["--evaluation.episodes", "2", "--evaluation.final-episodes", "2", "--evaluation.every", "200"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of layers and a run whose network a graph wires."""
    folder = tmp_path_factory.mktemp("runs")
    for name, preset in (("layers", "cartpole-dqn"), ("graph", "topology-dqn")):
        assert main(["train", preset, "--run-dir", str(folder / name), *TINY]) == 0
    return folder


def test_the_page_lies_in_the_run_and_shows_an_episode(trained, capsys):
    assert main(["report", str(trained / "layers"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    html = (trained / "layers" / "report.html").read_text()
    assert answer["page"] == str(trained / "layers" / "report.html")
    assert answer["bytes"] == len(html.encode()) < 3_000_000
    assert (answer["status"], answer["env_steps"], answer["label"]) == ("finished", 600, "cartpole-dqn")
    assert (answer["env"], answer["algorithm"], answer["notes"]) == ("cartpole", "dqn", [])
    pictures = [value for tag, name, value in require_harmless(html).attributes if (tag, name) == ("img", "src")]
    assert len(pictures) == answer["frames"] == min(MOST_FRAMES, answer["episode"]["length"] + 1)


def test_python_gets_the_same_page(trained):
    page = hotloop.report(trained / "layers", frames=False, write=False).html
    assert page.lower().startswith("<!doctype html>")
    assert "cartpole" in page


def test_a_network_wired_by_a_graph_is_drawn_with_its_measures(trained, tmp_path):
    file = tmp_path / "page.html"
    assert main(["report", str(trained / "graph"), "--html", str(file), "--no-frames"]) == 0
    seen = require_harmless(file.read_text())
    (drawing,) = [value for tag, name, value in seen.attributes if (tag, name) == ("img", "src")]
    assert drawing.startswith("data:image/svg+xml;base64,")
    assert "small-worldness" in seen.words
    assert "Pictures were not asked for." in seen.words
    assert "hotloop topology draw" in seen.text


def test_a_run_without_its_result_can_be_resumed(trained, tmp_path, capsys):
    result = trained / "layers" / "result.json"
    kept = result.read_bytes()
    result.unlink()
    try:
        assert main(["report", str(trained / "layers"), "--html", str(tmp_path / "page.html"), "--no-frames"]) == 0
    finally:
        result.write_bytes(kept)
    assert "and can be resumed" in capsys.readouterr().out
    assert "It goes on from 600 env steps:" in Seen((tmp_path / "page.html").read_text()).words


def test_a_flipped_byte_in_every_checkpoint_leaves_a_page_without_an_agent(trained, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained / "layers", run)
    for file in run.glob("checkpoints/*/best.safetensors"):
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    assert main(["report", str(run)]) == 0
    assert "The agent cannot be loaded" in (run / "report.html").read_text()


def test_an_env_of_code_is_not_imported_unasked(trained, tmp_path):
    run, touched = tmp_path / "run", tmp_path / "touched"
    shutil.copytree(trained / "layers", run)
    (tmp_path / "mine.py").write_text(f"open({str(touched)!r}, 'w').close()\nclass Mine: pass\n")
    settings = run / "settings.toml"
    settings.write_text(settings.read_text().replace('id = "cartpole"', f'id = "{tmp_path}/mine.py:Mine"'))
    assert main(["report", str(run)]) == 0
    assert not touched.exists()
    assert "--trust" in Seen((run / "report.html").read_text()).text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "is not a run directory"),
        (["{run}", "--doctor", "nothing.json"], "nothing.json"),
        (["{run}", "--html", "no/such/folder/page.html", "--no-frames"], "no/such/folder"),
        ([], "required"),
    ],
)
def test_mistakes_end_with_a_sentence(trained, run_folder, capsys, words, told):
    assert main(["report", *(word.format(run=trained / "layers") for word in words)]) == 2
    assert told in capsys.readouterr().err


def test_thinning_keeps_both_ends():
    assert _evenly(list(range(101)), 5) == [0, 25, 50, 75, 100]
    assert _evenly([1, 2], 5) == [1, 2]


def test_embedded_pictures_are_whole_files(trained, tmp_path):
    assert main(["report", str(trained / "layers"), "--html", str(tmp_path / "page.html")]) == 0
    seen = Seen((tmp_path / "page.html").read_text())
    uri = next(value for tag, name, value in seen.attributes if (tag, name) == ("img", "src"))
    data = base64.b64decode(uri.partition(",")[2])
    width, height = struct.unpack(">II", data[16:24])
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    assert len(zlib.decompress(data[start + 4 : start + 4 + length])) == height * (1 + 3 * width)
