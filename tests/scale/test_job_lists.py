"""Lists of jobs: what is written, what is refused on reading, and that a job is done once, wherever it is done."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli import compare, job
from hotloop.comparison.jobs import plan_jobs
from hotloop.core.arithmetic import arithmetic, differences
from hotloop.core.errors import HotloopError, RunError, SettingsError
from hotloop.core.user_files import SENT, split_file, whole_path
from hotloop.presets.env_settings import EnvSettings
from hotloop.scale.joblist import ListedJob, decode_list, default_out, encode_list, make_list
from hotloop.scale.specs import inner_path, read_folder
from hotloop.scale.work import place_in, prepared, run_job, states_of
from tests.comparison.synthetic_runs import make_arm, write_run

TINY = [
    *("--total-env-steps", "400", "--learning-starts", "100", "--batch-size", "8", "--network.hidden", "8"),
    *("--evaluation.every", "200", "--evaluation.episodes", "2", "--evaluation.final-episodes", "3"),
    *("--checkpoint.every", "100"),
]
WORDS = ["cartpole-dqn", "--seeds", "2", "--quiet"]


def listed(folder: Path, arm: Any, seeds: int = 1) -> list[ListedJob]:
    jobs = plan_jobs([arm], seeds, folder)
    return [ListedJob(i, one.name, f"{arm.folder}/seed-{one.seed}", one.spec()) for i, one in enumerate(jobs)]


def written(folder: Path, arm: Any) -> list[dict[str, Any]]:
    data = encode_list(make_list(listed(folder, arm), {"versions": {}}, "hotloop compare a"))
    return [json.loads(line) for line in data.splitlines()]


def as_bytes(lines: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_a_list_comes_back_as_it_was_written_and_twice_the_same(tmp_path: Path) -> None:
    arm = make_arm("a", gamma=0.5)
    jobs = make_list(listed(tmp_path, arm, 2), {"versions": {}}, "hotloop compare a")
    data = encode_list(jobs)
    assert data == encode_list(jobs)
    found = decode_list(data, "jobs.jsonl")
    assert [one.name for one in found.jobs] == ["a, seed 0", "a, seed 1"]
    assert found.jobs[1].spec["settings"]["gamma"] == 0.5
    assert encode_list(found) == data


@pytest.mark.parametrize(
    ("line", "change", "expected"),
    [
        (0, {"kind": "job"}, "no list of jobs"),
        (0, {"schema": 99}, "schema version 99"),
        (0, {"jobs": 7}, "it was cut or edited"),
        (1, {"kind": "rum"}, "did you mean `run`"),
        (1, {"folder": "../outside"}, "no path within a folder"),
        (1, {"folder": "/etc/cron.d"}, "no path within a folder"),
        (1, {"folder": "a/../../b"}, "no path within a folder"),
        (1, {"folder": 3}, "no path within a folder"),
        (1, {"index": 4}, "expected 0"),
        (1, {"seed": -1}, "`seed`"),
        (1, {"seed": True}, "`seed`"),
        (1, {"roots": ["/"]}, "files that stand nowhere"),
        (1, {"surprise": 1}, "`surprise`|'surprise'"),
    ],
)
def test_a_list_from_elsewhere_is_refused_with_its_line(
    line: int, change: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    lines = written(tmp_path, make_arm("a"))
    lines[line] |= change
    with pytest.raises(RunError, match=expected) as raised:
        decode_list(as_bytes(lines), "jobs.jsonl")
    assert f"jobs.jsonl, line {line + 1}" in raised.value.message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"gama": 0.5}, "gamma"),
        ({"gamma": 2.0}, "gamma"),
        ({"start_from": "/etc/passwd"}, "a path on somebody's machine"),
        ({"algorithm": "dqm"}, "dqn"),
    ],
)
def test_settings_in_a_list_pass_the_strict_loader(change: dict[str, Any], expected: str, tmp_path: Path) -> None:
    lines = written(tmp_path, make_arm("a"))
    lines[1]["settings"] |= change
    with pytest.raises(SettingsError) as raised:
        decode_list(as_bytes(lines), "jobs.jsonl")
    assert expected in str(raised.value)


def test_every_cut_and_flip_of_a_list_is_an_error_of_ours_or_harmless(tmp_path: Path) -> None:
    data = as_bytes(written(tmp_path, make_arm("a")))
    for place in range(0, len(data), 37):
        for mutant in (data[:place], data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]):
            with contextlib.suppress(HotloopError):
                decode_list(mutant, "jobs.jsonl")


def test_what_only_this_machine_has_is_not_planned(tmp_path: Path) -> None:
    (one,) = plan_jobs([make_arm("a", start_from="weights.safetensors")], 1, tmp_path)
    with pytest.raises(SettingsError, match="other machines do not have"):
        one.spec()


def test_a_folder_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "a").symlink_to(tmp_path / "outside")
    with pytest.raises(RunError, match="symbolic link"):
        place_in(tmp_path / "jobs", "a/seed-0")
    for name in ("", ".", "a//b", "./a", "a\\b", "x" * 501):
        with pytest.raises(ValueError, match="no path"):
            inner_path(name)


def test_the_state_of_each_job_and_what_is_finished_is_kept(tmp_path: Path) -> None:
    arm = make_arm("a")
    jobs = make_list(listed(tmp_path, arm, 3), {"versions": {"torch": "0.1"}}, "")
    write_run(tmp_path / "a" / "seed-0", arm, 0, [1.0])
    write_run(tmp_path / "a" / "seed-1", arm, 1, [1.0], finished=False)
    assert [row["state"] for row in states_of(jobs, tmp_path)] == ["finished", "stopped", "waiting"]
    assert run_job(jobs, 0, tmp_path).kept
    with pytest.raises(RunError, match="torch"):
        run_job(jobs, 1, tmp_path)
    with pytest.raises(RunError, match="jobs 0 to 2"):
        run_job(jobs, 3, tmp_path)
    write_run(tmp_path / "b" / "seed-0", make_arm("b", gamma=0.5), 0, [1.0])
    other = make_list(listed(tmp_path, make_arm("b", gamma=0.5)), {}, "")
    moved = [ListedJob(0, one.name, "a/seed-0", one.spec) for one in other.jobs]
    with pytest.raises(RunError, match="other settings: gamma"):
        states_of(make_list(moved, {}, ""), tmp_path)


def test_code_needs_trust_and_its_folder_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, node = tmp_path / "home", tmp_path / "node"
    (home / ".git").mkdir(parents=True)
    (home / ".git" / "config").write_text("secret")
    (home / "my_env.py").write_text("class Env: ...\n")
    (home / "deep").mkdir()
    (home / "deep" / "table.csv").write_text("1,2\n")
    (home / "elsewhere").symlink_to("/etc/passwd")
    assert sorted(read_folder(home)) == ["deep/table.csv", "my_env.py"]
    arm = make_arm("a", env=EnvSettings(id=f"{home}/my_env.py:Env"), trust=True)
    jobs = decode_list(encode_list(make_list(listed(tmp_path, arm), {}, "")), "jobs.jsonl")
    with pytest.raises(SettingsError, match="--trust"):
        run_job(jobs, 0, node)
    with prepared(jobs.jobs[0].spec, node / "a" / "seed-0", jobs.folders) as task:
        assert "--trust" in task.command
        monkeypatch.setenv(SENT, task.environment[SENT])
        here, name = split_file(f"{home}/my_env.py:Env")
        assert (here.read_text(), name) == ("class Env: ...\n", "Env")
        assert not here.is_relative_to(home)
        assert whole_path(f"{home}/my_env.py:Env") == f"{home}/my_env.py:Env", "settings say what the owner typed"
    assert not here.exists()


def test_two_machines_are_told_apart_in_text() -> None:
    here = arithmetic()
    assert differences(here, here) == []
    other = here | {"versions": here["versions"] | {"torch": "1.0", "python": "3.99.1"}}
    assert [text.split()[0] for text in differences(here, other)] == ["python", "torch"]
    assert "3.99 instead of" in differences(here, other)[0]
    assert differences(here, here | {"vector unit": "NEON"}) == [f"vector unit NEON instead of {here['vector unit']}"]
    assert "rounds in another way" in differences(here, here | {"computed": "x", "processor": "odd"})[0]
    assert "another text" in differences(here, here | {"sources": "x"})[0]


def test_the_runs_of_a_list_lie_beside_it() -> None:
    assert default_out(Path("deep/jobs.jsonl")) == Path("deep/jobs")
    assert default_out(Path("jobs")) == Path("jobs-runs")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rum", "jobs.jsonl"], "did you mean `run`"),
        (["run", "jobs.jsonl"], "cannot read"),
        (["list", "there.jsonl", "--index", "x"], "invalid int"),
    ],
)
def test_mistakes_of_the_verb_are_told(words: list[str], expected: str, run_folder: Path) -> None:
    with pytest.raises(HotloopError, match=expected):
        job.run(words)


def test_a_plan_done_job_by_job_compares_as_trained_here(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "--plan", "jobs.jsonl", "--json", "--", *TINY]
    assert compare.run(words) == 0
    assert json.loads(capsys.readouterr().out)["left"] == [0, 1]
    assert job.run(["list", "jobs.jsonl"]) == 1
    for index in ("0", "1"):
        assert job.run(["run", "jobs.jsonl", "--index", index]) == 0
    capsys.readouterr()
    assert job.run(["run", "jobs.jsonl", "--index", "1", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["kept"]
    assert job.run(["list", "jobs.jsonl"]) == 0
    assert compare.run(words) == 0
    assert compare.run([*WORDS, "--out", "here", "--", *TINY]) == 0
    assert merged("jobs") == merged("here")
    result = json.loads(Path("here/cartpole-dqn/seed-1/result.json").read_text())
    assert again["digest"] == result["digest"]
    capsys.readouterr()
    assert compare.run(["jobs", "--out", "folders", "--json", "--quiet"]) == 0
    (arm,) = json.loads(capsys.readouterr().out)["arms"]
    assert arm["runs"] == json.loads(Path("here/compare.json").read_text())["arms"][0]["runs"]


def merged(folder: str) -> str:
    """All of `compare.json` but its circumstances, byte by byte."""
    data = json.loads((Path(folder) / "compare.json").read_text())
    del data["circumstances"]
    return json.dumps(data)
