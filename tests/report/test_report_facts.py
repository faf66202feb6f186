"""A damaged or missing file costs its own part and is told."""

import json

import pytest
from tests.report.written_runs import write_run

from hotloop.core.errors import RunError
from hotloop.report.facts import read_facts
from hotloop.report.make import make_report


def test_a_whole_run_is_read_without_a_note(tmp_path):
    facts = read_facts(write_run(tmp_path / "run"))
    assert (facts.label, facts.status, facts.env_steps) == ("cartpole-dqn", "finished", 300)
    assert facts.notes == ()
    assert facts.latest("updates") == 150
    assert facts.machine["python"] == "3.12.3"
    assert len(facts.rows_of("evaluation")) == 3


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path):
    path = write_run(tmp_path / "run", finished=False)
    events = path / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-20])
    facts = read_facts(path)
    assert len(facts.rows_of("evaluation")) == 2
    assert facts.status == "stopped"
    assert facts.notes == ("The last line of events.jsonl (line 7) is cut off; it is left out.",)


def test_damaged_lines_in_the_middle_are_counted(tmp_path):
    path = write_run(tmp_path / "run")
    events = path / "events.jsonl"
    lines = events.read_text().splitlines()
    lines[2], lines[3] = "{nothing", "[1, 2]"
    events.write_text("\n".join(lines) + "\n")
    facts = read_facts(path)
    assert len(facts.rows) == 5
    assert facts.notes == ("2 lines of events.jsonl cannot be read and are left out (line 3, 4).",)


@pytest.mark.parametrize("name", ["events.jsonl", "run.json", "result.json", "settings.toml", "lane.json"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[1]", b'{"schema": 7}'])
def test_any_one_damaged_file_still_gives_a_page(tmp_path, name, content):
    path = write_run(tmp_path / "run")
    (path / name).write_bytes(content)
    made = make_report(path)
    assert "<h1>" in made.html
    told = "Not everything could be read" in made.html
    assert told == bool(made.data["notes"])
    if content == b"\xff\xfe\x00":
        assert name in made.data["notes"][0]


def test_a_run_of_which_only_the_settings_are_left_gives_a_page(tmp_path):
    path = write_run(tmp_path / "run")
    for name in ("events.jsonl", "run.json", "result.json", "lane.json"):
        (path / name).unlink()
    made = make_report(path)
    assert "there is no curve" in made.html
    assert "Nothing was evaluated yet" in made.html
    assert "there is no agent to look at" in made.html
    assert "this starts it from the beginning" in made.html


def test_a_damaged_checkpoint_is_named(tmp_path):
    path = write_run(tmp_path / "run")
    (path / "checkpoints" / "000000000000300").mkdir(parents=True)
    facts = read_facts(path)
    assert facts.checkpoints == ()
    assert "Checkpoint 000000000000300 cannot be used" in facts.notes[0]


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not a run"):
        make_report(tmp_path)


def test_the_answer_is_plain_json_whatever_the_files_hold(tmp_path):
    path = write_run(tmp_path / "run")
    file = path / "settings.toml"
    file.write_text(file.read_text().replace("total_env_steps = 400", "total_env_steps = 2026-01-01"))
    (path / "result.json").write_text('{"schema": 1, "updates": 5, "evaluation": {"mean_return": NaN}}')
    answer = json.loads(json.dumps(make_report(path).data, allow_nan=False))
    assert (answer["total_env_steps"], answer["updates"]) == ("2026-01-01", 5)
    assert answer["evaluation"] == {"mean_return": None}
