"""Logs of other programs as the dashboard holds them: tables, hostile files, the doctor's reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.dashboard.arms import arms_of
from hotloop.dashboard.index import Index
from hotloop.dashboard.library import Item, Library
from hotloop.dashboard.table import table


def library_of(folder: Path) -> Library:
    made = Library(folder, Index(None))
    made.scan()
    return made


def column(library: Library, event: str, name: str) -> list[float]:
    (item,) = library.items()
    found = library.column(item.id, event, name)
    return [] if found is None else found.tolist()


def test_what_tensorboardx_writes_is_read(tmp_path):
    tensorboardx = pytest.importorskip("tensorboardX", reason="the extra `tensorboard` is not installed")
    writer = tensorboardx.SummaryWriter(str(tmp_path / "logs" / "PPO_1"))
    for step in range(50):
        writer.add_scalar("rollout/ep_rew_mean", 2.0 * step, step * 100)
        writer.add_scalar("train/loss", 1 / (1 + step), step * 100)
    writer.close()
    library = library_of(tmp_path / "logs")
    assert column(library, "progress", "rollout/ep_rew_mean") == [2.0 * step for step in range(50)]
    assert column(library, "progress", "mean_return") == column(library, "progress", "rollout/ep_rew_mean")
    assert column(library, "progress", "env_steps") == [100.0 * step for step in range(50)]
    assert table(library)["runs"][0]["status"] == "log"


def test_a_monitor_of_stable_baselines(tmp_path):
    (tmp_path / "monitor.csv").write_text(
        '#{"t_start": 1000.5, "env_id": "CartPole-v1"}\nr,l,t\n10,10,0.5\n30,20,1.5\n'
    )
    library = library_of(tmp_path)
    assert column(library, "progress", "env_steps") == [10.0, 30.0]
    assert column(library, "progress", "mean_return") == [10.0, 30.0]
    assert column(library, "progress", "seconds") == [0.5, 1.5]
    row = table(library)["runs"][0]
    assert (row["env"], row["time"], row["score"], row["scored"]) == ("CartPole-v1", 1000.5, 30.0, "training")


def test_a_progress_file_of_stable_baselines(tmp_path):
    text = "time/total_timesteps,rollout/ep_rew_mean,eval/mean_reward,time/time_elapsed,note\n"
    text += "100,1.5,,2,x\n200,2.5,9,4,y\n"
    (tmp_path / "progress.csv").write_text(text)
    library = library_of(tmp_path)
    assert column(library, "progress", "env_steps") == [100.0, 200.0]
    assert column(library, "progress", "mean_return") == [1.5, 2.5]
    assert column(library, "evaluation", "mean_return") == [9.0]
    assert column(library, "evaluation", "env_steps") == [200.0]


def test_any_table_of_numbers_and_rows_counted_where_nothing_says_how_far(tmp_path):
    (tmp_path / "mine.csv").write_text("reward,loss\n1,5\n2,nan\n,7\n")
    library = library_of(tmp_path)
    assert column(library, "progress", "env_steps") == [1.0, 2.0, 3.0]
    assert column(library, "progress", "loss")[0::2] == [5.0, 7.0]


@given(data=st.binary(max_size=300))
def test_hostile_tables_end_without_a_traceback(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    for name in ("monitor.csv", "progress.csv", "other.csv", "doctor.json", "events.out.tfevents.1"):
        (folder / name).write_bytes(data)
    json.dumps(table(library_of(folder)), allow_nan=False)


def test_numbered_folders_are_seeds_of_one_arm(tmp_path):
    for number in (1, 2):
        (tmp_path / f"ppo_{number}").mkdir()
        (tmp_path / f"ppo_{number}" / "progress.csv").write_text("step,r\n1,2\n")
    assert [len(arm["runs"]) for arm in table(library_of(tmp_path))["arms"]] == [2]


def test_folders_named_as_cleanrl_names_them_are_seeds_of_one_arm():
    names = [
        "runs/CartPole-v1__dqn__1__1700000000",
        "runs/CartPole-v1__dqn__2__1700009999",
        "runs/CartPole-v1__ppo__1__1700000000",
    ]
    items = [Item(name, "tensorboard", name, {}, "log") for name in names]
    assert [(arm.label, len(arm.items)) for arm in arms_of(items)] == [
        ("runs/CartPole-v1__dqn", 2),
        ("runs/CartPole-v1__ppo", 1),
    ]


def test_a_saved_report_of_the_doctor_opens(tmp_path):
    finding = {"title": "Slow", "evidence": "It takes 86 %.", "expected_gain": 2.0, "share": 0.5, "rule": "LOG003"}
    (tmp_path / "doctor.json").write_text(json.dumps({"schema": 1, "verdict": "Too slow.", "findings": [finding]}))
    (tmp_path / "my-diagnosis.json").write_text('{"nothing": 1}')
    library = library_of(tmp_path)
    assert [(report["name"], report["verdict"]) for report in table(library)["reports"]] == [
        ("doctor.json", "Too slow.")
    ]
    (item,) = library.items()
    assert item.about["findings"][0]["evidence"] == "It takes 86 %."
