"""A folder kept in step with its files: growing, cut back, gone, damaged; and the index between two openings."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import numpy as np
import pytest

from hotloop.comparison.compare import compare
from hotloop.dashboard.arms import arm_score, arms_of
from hotloop.dashboard.index import Index
from hotloop.dashboard.library import Library
from hotloop.dashboard.sources import find_sources
from hotloop.dashboard.table import changed_rows, table
from hotloop.dashboard.verdict import differences, judge
from tests.dashboard.synthetic import event_rows, write_run


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "runs").mkdir()
    made = Library(tmp_path / "runs")
    yield made
    made.index.close()


def column_of(library: Library, place: str, name: str = "mean_return") -> list[float]:
    item = next(item for item in library.items() if item.place == place)
    found = library.column(item.id, "progress", name)
    return [] if found is None else found.tolist()


def expected(rows: list[dict], name: str = "mean_return") -> list[float]:
    return [row[name] for row in rows if row["event"] == "progress"]


def test_a_run_is_read_whole_and_then_only_what_was_added(library):
    run = write_run(library.folder / "one", rows=10, finished=False)
    library.scan()
    assert column_of(library, "one") == expected(list(event_rows(0, 10, 10, 400.0)))
    more = list(event_rows(1, 5, 0, 400.0))[1:]
    with open(run / "events.jsonl", "a") as stream:
        stream.write("".join(json.dumps(row) + "\n" for row in more) + '{"event":"progress","env_st')
    before = library.version
    library.scan()
    assert column_of(library, "one")[10:] == expected(more)  # the line that is being written is left for later
    version, ids = library.changed_since(before)
    assert version > before
    assert len(ids) == 1


def test_training_seconds_leave_out_start_up_and_evaluation(library):
    write_run(library.folder / "one", rows=4)
    library.scan()
    assert column_of(library, "one", "training_seconds") == pytest.approx([12.0, 24.0, 36.0, 48.0])  # 80 % of 60 s


def test_a_file_that_a_resume_cut_back_is_read_anew(library):
    run = write_run(library.folder / "one", rows=20, finished=False)
    library.scan()
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    other = [json.dumps(row) + "\n" for row in event_rows(7, 30, 0, 100.0)][15:]
    (run / "events.jsonl").write_text("".join(lines[:8] + other))
    library.scan()
    rows = [json.loads(line) for line in [*lines[:8], *other]]
    assert column_of(library, "one") == expected(rows)


def test_columns_longer_than_a_piece_and_new_names_come_back_as_they_were(library):
    run = write_run(library.folder / "one", rows=5_000, evaluations=0, finished=False)
    library.scan()
    with open(run / "events.jsonl", "a") as stream:
        stream.write('{"event":"progress","env_steps":100001,"mean_return":1.5,"late":7}\n')
    library.scan()
    assert column_of(library, "one")[-2:] == [expected(list(event_rows(0, 5_000, 0, 400.0)))[-1], 1.5]
    late = column_of(library, "one", "late")
    assert len(late) == 5_001
    assert np.isnan(late[:-1]).all()
    assert late[-1] == 7


def test_the_index_answers_before_anything_is_read(library):
    write_run(library.folder / "one", rows=10)
    library.scan()
    again = Library(library.folder)
    assert [item.place for item in again.items()] == ["one"]
    assert column_of(again, "one") == column_of(library, "one")
    again.index.close()


def test_two_dashboards_of_one_folder_add_no_row_twice(library):
    run = write_run(library.folder / "one", rows=10, finished=False)
    other = Library(library.folder)
    for one in (library, other):
        one.scan()
    with open(run / "events.jsonl", "a") as stream:
        stream.write('{"event":"progress","env_steps":100001,"mean_return":1.5}\n')
    for one in (library, other, library):
        one.scan()
    assert len(column_of(library, "one")) == len(column_of(other, "one")) == 11
    other.index.close()


def test_a_damaged_index_is_made_again(library):
    write_run(library.folder / "one", rows=10)
    library.scan()
    file = library.index.file
    library.index.close()
    for path in file.parent.glob(f"{file.name}*"):
        path.write_bytes(b"no index " * 1_000)
    again = Library(library.folder)
    again.scan()
    assert len(column_of(again, "one")) == 10
    again.index.close()


def test_without_a_folder_of_its_own_the_index_is_held_in_memory(tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "runs").mkdir()
    library = Library(tmp_path / "runs")
    assert "held in memory" in library.problem
    assert library.index.file is None


def test_a_run_that_is_gone_goes_and_a_page_is_told(library):
    run = write_run(library.folder / "one", rows=3)
    library.scan()
    version = library.version
    run.rename(library.folder.parent / "elsewhere")
    library.scan()
    assert library.items() == []
    assert list(changed_rows(library, version)["runs"].values()) == [None]


def test_a_run_is_running_while_its_lock_is_held(library):
    run = write_run(library.folder / "one", rows=3, finished=False)
    descriptor = os.open(run / "lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    library.scan()
    assert [item.status for item in library.items()] == ["running"]
    os.close(descriptor)
    library.scan()
    assert [item.status for item in library.items()] == ["stopped"]


def test_links_are_not_followed_and_hidden_folders_not_looked_at(tmp_path):
    write_run(tmp_path / "elsewhere" / "run", rows=1)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "elsewhere")
    write_run(tmp_path / "runs" / ".hidden" / "run", rows=1)
    write_run(tmp_path / "runs" / "here", rows=1)
    assert [source.place for source in find_sources(tmp_path / "runs").sources] == ["here"]


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\n",
        b"[1]\n",
        b"[" * 100_000 + b"\n",
        b'{"event":"progress","x":1e999,"y":NaN,"z":true}\n',
        b"9" * 70_000,
    ],
)
def test_lines_that_are_no_rows_cost_themselves_only(library, line):
    run = write_run(library.folder / "one", rows=2, finished=False)
    with open(run / "events.jsonl", "ab") as stream:
        stream.write(line + b'\n{"event":"progress","env_steps":7,"mean_return":1.0}\n')
    library.scan()
    returns = [value for value in column_of(library, "one") if np.isfinite(value)]
    assert len(returns) == 3
    assert returns[-1] == 1.0


def family(folder: Path, seeds: int = 5) -> None:
    for seed in range(seeds):
        write_run(folder / "plain" / f"seed-{seed}", seed=seed, height=400.0)
        write_run(folder / "slow" / f"seed-{seed}", seed=seed, lr=1e-5, height=100.0)


def test_seeds_are_one_arm_and_its_score_is_what_compare_says(library, tmp_path):
    family(library.folder)
    library.scan()
    arms = arms_of(library.items())
    assert sorted(arm.label for arm in arms) == ["plain", "slow"]
    found = compare(library.folder / "plain", library.folder / "slow", out=tmp_path / "out")
    by_label = {arm.label: arm_score(library.index, arm) for arm in arms}
    for summary in found.summaries:
        assert by_label[summary.label]["value"] == summary.score.value
        assert by_label[summary.label]["interval"] == pytest.approx(list(summary.score.interval))


def test_the_verdict_on_two_arms_is_the_sentence_of_compare(library, tmp_path):
    family(library.folder)
    library.scan()
    ids = [id for arm in arms_of(library.items()) for id in [item.id for item in arm.items]]
    said = judge(library, ids)
    found = compare(library.folder / "plain", library.folder / "slow", out=tmp_path / "out").as_data()
    assert said["sentence"] == found["circumstances"]["contrasts"][0]["verdict"]
    assert said["learning"] == "worse"
    assert said["command"].startswith("hotloop compare")
    found = differences(library, ids)
    assert found["rows"] == [{"setting": "optimizer.learning_rate", "values": [5e-4, 1e-5]}]
    assert found["partial"] == []
    assert len(found["arms"]) == 2


def test_there_is_no_verdict_before_both_arms_have_a_finished_run(library):
    write_run(library.folder / "a" / "seed-0", rows=3)
    write_run(library.folder / "b" / "seed-0", rows=3, lr=0.1, finished=False)
    library.scan()
    assert "No run of b is finished" in judge(library, [item.id for item in library.items()])["missing"]


def test_the_table_says_what_people_sort_and_filter_by(library):
    family(library.folder, seeds=2)
    library.scan()
    found = table(library)
    assert found["settings"] == ["optimizer.learning_rate"]
    row = next(row for row in found["runs"] if row["name"] == "slow/seed-1")
    assert (row["seed"], row["env"], row["score"], row["scored"], row["total"]) == (
        1,
        "cartpole",
        101.0,
        "fresh",
        100_000,
    )
    assert row["settings"] == {"optimizer.learning_rate": 1e-5}
    assert "progress:loss" in found["measures"]
    json.dumps(found, allow_nan=False)


def test_an_index_in_memory_behaves_like_one_on_disk(tmp_path):
    write_run(tmp_path / "runs" / "one", rows=5)
    library = Library(tmp_path / "runs", Index(None))
    library.scan()
    assert len(column_of(library, "one")) == 5


def test_a_folder_of_several_algorithms_can_be_filtered_by_any_setting(library):
    """Settings that only one algorithm has must not push out those by which its runs differ."""
    for lr in (1e-3, 1e-4):
        write_run(library.folder / f"lr-{lr:g}", lr=lr)
    other = write_run(library.folder / "other", lr=1e-3)
    text = (other / "settings.toml").read_text()
    extra = "".join(f"only_{number} = {number}\n" for number in range(80))
    (other / "settings.toml").write_text(extra + text)
    library.scan()
    shown = table(library)
    assert all("optimizer.learning_rate" in run["settings"] for run in shown["runs"])
    assert shown["shared"]["env.id"] == "cartpole"
    labels = {arm["label"] for arm in shown["arms"]}
    assert any("optimizer.learning_rate 0.0001" in label for label in labels), labels
    ids = [run["id"] for run in shown["runs"]]
    found = differences(library, ids)
    assert [row["setting"] for row in found["rows"]] == ["optimizer.learning_rate"]
    assert len(found["partial"]) == 80
    assert len(found["arms"]) == len(found["rows"][0]["values"])


def test_a_log_without_settings_has_no_column_among_the_settings_that_differ(library):
    for lr in (1e-3, 1e-4):
        write_run(library.folder / f"lr-{lr:g}", lr=lr)
    (library.folder / "progress.csv").write_text("time/total_timesteps,rollout/ep_rew_mean\n100,20\n")
    library.scan()
    found = differences(library, [item.id for item in library.items()])
    assert len(found["arms"]) == 2
    assert all(len(row["values"]) == 2 for row in found["rows"])
