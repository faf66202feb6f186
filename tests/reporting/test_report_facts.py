"""A damaged or missing file costs its own part and is told."""

import json
import tracemalloc

import pytest

from hotloop.core.errors import RunError
from hotloop.reporting import rows as event_rows
from hotloop.reporting.facts import best_row, read_facts
from hotloop.reporting.make import make_report
from tests.reporting.written_runs import write_run


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


def many_rows(count: int) -> bytes:
    """Progress rows whose loss is 1 but for one, evaluations that are best in the middle."""
    lines = [b'{"event":"start","machine":{"python":"3"}}\n']
    for number in range(1, count + 1):
        clock = b'"seconds":%d,"phases":{"act":%d,"update":%d}' % (number, number, 2 * number)
        lines.append(b'{"event":"progress","env_steps":%d,"loss":1.0,%s}\n' % (10 * number, clock))
        if number % 10 == 0:
            score = 77 if number == count // 20 * 10 else 5
            lines.append(b'{"event":"evaluation","env_steps":%d,"mean_return":%d,%s}\n' % (10 * number, score, clock))
    return b"".join(lines)


def test_many_rows_are_averaged_in_bounded_memory_and_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(event_rows, "MOST_ROWS", 100)
    path = write_run(tmp_path / "run")
    (path / "result.json").unlink(missing_ok=True)
    (path / "events.jsonl").write_bytes(many_rows(20_000))
    facts = read_facts(path)
    assert len(facts.rows) <= 3 * 2 * 100
    assert facts.env_steps == 200_000
    assert facts.machine == {"python": "3"}
    assert best_row(facts.rows_of("evaluation"))["mean_return"] == 77  # never averaged
    assert facts.rows_of("evaluation")[-1]["mean_return"] == 5
    assert {row["loss"] for row in facts.rows_of("progress")} == {1.0}
    assert facts.latest("seconds") == 20_000
    page = make_report(path).html
    assert "events.jsonl has 22,001 rows; neighbors were averaged to draw them." in page


def test_of_a_very_long_file_some_rows_are_read_and_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(event_rows, "PARSED_BYTES", 100_000)
    path = write_run(tmp_path / "run")
    (path / "result.json").unlink(missing_ok=True)
    (path / "events.jsonl").write_bytes(many_rows(20_000) + b'{"event": "progress", "env_steps": 200010}\n{"event"')
    tracemalloc.start()
    facts = read_facts(path)
    assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    tracemalloc.stop()
    assert len(facts.rows) < 4_000
    assert len(facts.rows_of("evaluation")) == 2_000  # few, so all of them
    assert best_row(facts.rows_of("evaluation"))["mean_return"] == 77
    assert "The last line of events.jsonl (line 22003) is cut off" in facts.notes[0]
    assert "were read, evenly, and averaged" in make_report(path).html


def test_a_line_longer_than_any_row_is_damage_and_costs_no_memory(tmp_path):
    path = write_run(tmp_path / "run")
    with (path / "events.jsonl").open("ab") as file:
        file.write(b'{"event": "progress", "x": "' + b"x" * 10**7 + b'"}\n{"event": "progress", "env_steps": 999}\n')
    tracemalloc.start()
    facts = read_facts(path)
    assert tracemalloc.get_traced_memory()[1] < 5 * 2**20
    tracemalloc.stop()
    assert facts.rows[-1]["env_steps"] == 999
    assert "1 lines of events.jsonl cannot be read" in facts.notes[-1]
