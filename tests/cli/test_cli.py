"""The command line as a person uses it: every verb, its mistakes, and JSON that scripts can rely on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.cli.main import GROUPS, VERBS, main
from hotloop.core.workloads import workloads

TINY = [
    "--total-env-steps",
    "400",
    "--learning-starts",
    "100",
    "--batch-size",
    "8",
    "--network.hidden",
    "8",
    "--evaluation.episodes",
    "2",
    "--evaluation.final-episodes",
    "3",
]
BEFORE_IT = re.compile(r"^(\S+: (DQN|PPO) on .*; loading PyTorch|compil(ing|ed) .*)\n", re.MULTILINE)
"""What `train` may have said before a mistake is found."""
RESULT_KEYS = {
    "run",
    "env_steps",
    "updates",
    "episodes",
    "seconds",
    "env_steps_per_second",
    "overall_env_steps_per_second",
    "evaluation_env_steps",
    "phases",
    "evaluation",
    "final_evaluation",
    "lane",
    "precision",
    "digest",
}


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """The JSON answer of a verb that must succeed."""
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def fail(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a verb says that must fail with exit code 2."""
    capsys.readouterr()
    assert main(list(words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


def test_train_resume_evaluate_and_runs_tell_one_story(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = ask(capsys, "train", "cartpole-dqn", *TINY, "--run-dir", "runs/mine")
    assert result.keys() == RESULT_KEYS | {"schema"}
    assert result["env_steps"] == 400
    assert ask(capsys, "resume", "runs/mine") == result
    evaluation = ask(capsys, "evaluate", "runs/mine", "--episodes", "7")
    assert evaluation["episodes"] == 7
    (row,) = ask(capsys, "runs")["runs"]
    assert row["status"] == "finished"
    assert row["mean_return"] == result["evaluation"]["mean_return"]


def test_ppo_has_the_same_verbs(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = ["--total-env-steps", "512", "--network.hidden", "8", "--evaluation.episodes", "2"]
    result = ask(capsys, "train", "cartpole-ppo", *tiny, "--evaluation.final-episodes", "3", "--run-dir", "runs/mine")
    assert result.keys() == RESULT_KEYS | {"schema"}
    assert result["env_steps"] == 512
    assert ask(capsys, "resume", "runs/mine") == result
    assert ask(capsys, "evaluate", "runs/mine", "--episodes", "7")["episodes"] == 7
    (episode,) = ask(capsys, "watch", "runs/mine")["episodes"]
    assert episode["length"] == episode["return"] > 0
    by_path = {row["path"]: row for row in ask(capsys, "settings", "ppo")["settings"]}
    assert by_path["gae_lambda"]["default"] == 0.95
    assert all(row["meaning"] for row in by_path.values())
    assert "rollout_steps" in fail(capsys, "train", "cartpole-ppo", "--rollout-step", "3")


def test_a_run_ends_by_saying_what_was_learned_and_where_the_time_went(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "cartpole-dqn", *TINY]) == 0
    captured = capsys.readouterr()
    assert "mean return" in captured.out
    assert "update" in captured.out
    assert (run_folder / "runs").is_dir()


def test_the_summary_has_both_rates_and_says_what_the_doctor_would(capsys: pytest.CaptureFixture[str]) -> None:
    from hotloop.cli.progress import print_result, remarks

    judged = {"episodes": 3, "mean_return": 1.0, "std_return": 0.0, "mean_length": 9.0}
    seconds = {"start-up": 50.0, "compile": 30.0, "update": 3.0, "env": 1.0, "evaluate": 16.0}
    result = {"run": "r", "env_steps": 50_000, "updates": 1, "episodes": 1, "seconds": 100.0, "lane": "native"}
    result |= {"env_steps_per_second": 12_500.0, "evaluation": judged, "final_evaluation": judged}
    result["phases"] = {name: {"seconds": value, "share": value / 100} for name, value in seconds.items()}
    print_result(result)
    said = " ".join(capsys.readouterr().out.split())
    assert "12,500 env steps/s while training, 500 all in all" in said
    few, doctor = remarks(result)
    assert "judged on 3 episodes only" in few
    assert doctor.startswith("LOG003: evaluation takes 80% of the loop (16.0 s)")
    result["evaluation"] = judged | {"episodes": 100}
    result["phases"]["evaluate"]["seconds"] = 0.9
    assert remarks(result) == []


def test_every_verb_explains_itself_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    own = [(workload.name, verb) for workload in workloads() for verb in ("", *workload.verbs)]
    for verb in [*VERBS, *(" ".join(words).strip() for words in own if words[0] != "hotloop")]:
        with pytest.raises(SystemExit) as left:
            main([*verb.split(), "--help"])
        assert left.value.code == 0
        text = capsys.readouterr().out
        assert "example" in text
        assert "--json" in text


def test_help_shows_verbs_in_groups_and_with_all_those_that_few_need(capsys: pytest.CaptureFixture[str]) -> None:
    screens = []
    for words in (["--help"], [], ["help", "--all"], ["--help", "--all"]):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 0
        screens.append(capsys.readouterr().out)
    assert screens[0] == screens[1]
    assert screens[2] == screens[3]
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    few = set(VERBS) - set(grouped)
    assert {"debug-nan"} <= few
    for screen, with_all in ((screens[0], False), (screens[2], True)):
        listed = {line.split()[0] for line in screen.splitlines() if line.startswith("  ") and line[2] != " "}
        assert {*grouped} <= listed
        assert (few <= listed, bool(few & listed)) == (with_all, with_all)
        assert [title for title in GROUPS if f"\n{title}:\n" in screen] == [*GROUPS]


def test_settings_lists_every_field_with_default_and_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ask(capsys, "settings", "dqn")["settings"]
    by_path = {row["path"]: row for row in rows}
    assert by_path["env.num_envs"]["default"] == 1
    assert all(row["meaning"] for row in rows)
    assert main(["settings", "dqn"]) == 0
    assert "--updates-per-env-step" in capsys.readouterr().out


def test_settings_shows_the_text_of_a_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(capsys, "settings", "cartpole-slm")["updates_per_batch"] == 8
    assert main(["settings", "cartpole-slm"]) == 0
    assert "79,744" in capsys.readouterr().out


def test_envs_lists_and_checks(capsys: pytest.CaptureFixture[str]) -> None:
    ids = {row["id"] for row in ask(capsys, "envs")["envs"]}
    assert {"cartpole", "CartPole-v1"} <= ids
    assert all(row["ok"] for row in ask(capsys, "envs", "check", "cartpole", "--env-steps", "300")["checks"])
    wrapped = ["CartPole-v1", "--env.wrappers", "FrameStackObservation(2)", "ClipReward(-1, 1)", "--env-steps", "60"]
    assert all(row["ok"] for row in ask(capsys, "envs", "check", *wrapped)["checks"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["trian"], "did you mean `train`"),
        (["train"], "preset"),
        (["train", "cartpole-dqm"], "cartpole-dqn"),
        (["train", "missing.toml"], "missing.toml"),
        (["train", "cartpole-dqn", "--env.num-env", "3"], "env.num_envs"),
        (["train", "cartpole-dqn", "--bach-size", "3"], "batch_size"),
        (["train", "cartpole-dqn", "--batch-size", "many"], "whole number"),
        (["train", "cartpole-dqn", "--batch-size", "0"], "at least 1"),
        (["train", "cartpole-dqn", "--loss", "hubert"], "huber"),
        (["train", "cartpole-dqn", "--network.atoms", "51", "--loss", "mse"], "C51"),
        (["train", "cartpole-dqn", "--env.id", "CartPol-v1"], "CartPole-v1"),
        (["train", "cartpole-dqn", "--env.id", "Pendulum-v1"], "needs Discrete"),
        (["train", "cartpole-dqn", "--device", "cuda:7"], "--device cpu"),
        (["train", "cartpole-dqn", "--replay.buffer-size", "1e15"], "replay.buffer_size"),
        (["resume", "nowhere"], "nowhere"),
        (["evaluate", "nowhere"], "nowhere"),
        (["evaluate", "runs", "--episodes", "some"], "--episodes"),
        (["envs", "check"], "CartPole-v1"),
        (["envs", "check", "CartPole-v1", "--env.wrappers", "FrameStack(2)"], "FrameStackObservation"),
        (["envs", "check", "CartPole-v1", "--seed", "2"], "no option of `envs`"),
        (["envs", "check", "CartPole-v1", "--env.id", "cartpole"], "no option of `envs`"),
        (["settings", "dqm"], "dqn"),
    ],
)
def test_a_mistake_is_one_sentence_with_a_hint(
    words: list[str], expected: str, run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = fail(capsys, *words)
    assert BEFORE_IT.sub("", said).startswith("error: ")
    assert expected in said
    assert not (run_folder / "runs").exists() or not any((run_folder / "runs").iterdir()), "a mistake left a run behind"


USER_ENV = """
import gymnasium
import numpy as np

class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.clock = 0, 0
        return self._obs(), {}

    def step(self, action):
        self.place += 1 if action == 2 else -1
        self.clock += 1
        return self._obs(), BAD_REWARD, self.place >= 3, self.clock >= 20, {}

    def _obs(self):
        return np.array([self.place / 20, self.clock / 20], np.float32)
"""


def test_an_env_of_ones_own_file_trains_and_asks_for_trust_when_loaded(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_folder / "corridor.py").write_text(USER_ENV.replace("BAD_REWARD", "float(self.place >= 3)"))
    env = ["--env.id", "corridor.py:Corridor"]
    ask(capsys, "train", "cartpole-dqn", *TINY, *env, "--run-dir", "own")
    assert "--trust" in fail(capsys, "evaluate", "own")
    assert ask(capsys, "evaluate", "own", "--trust", "--episodes", "3")["episodes"] == 3
    assert hotloop.load("own").act([0.0, 0.0]) in (1, 2)  # as the env numbers its actions
    (run_folder / "own.toml").write_text('[env]\nid = "corridor.py:Corridor"\n')
    assert "--trust" in fail(capsys, "train", "own.toml", *TINY)
    assert main(["train", "own.toml", *TINY, "--trust", "--quiet"]) == 0
    (run_folder / "own.toml").write_text('[network]\ntorso = "net.py:Net"\n')
    assert "--trust" in fail(capsys, "train", "own.toml", *TINY)
    assert "no file `" in fail(capsys, "train", "own.toml", *TINY, "--trust")
    assert "no file `" in fail(capsys, "train", "cartpole-dqn", *TINY, "--network.torso", "net.py:Net")
    (run_folder / "own.toml").write_text("trust = true\n")
    assert "command line" in fail(capsys, "train", "own.toml")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["dqn", "--env.id", "corridor.py:Corridor"], "Corridor-dqn"),
        (["cartpole-dqn"], "cartpole-dqn"),
        (["cartpole-dqn", "--env.id", "CartPole-v1"], "CartPole-v1-dqn"),
        (["own.toml"], "own"),
        (["own.toml", "--env.id", "CartPole-v1"], "CartPole-v1-dqn"),
    ],
)
def test_a_run_is_called_after_its_env_where_that_is_not_the_presets(
    words: list[str], name: str, run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_folder / "corridor.py").write_text(USER_ENV.replace("BAD_REWARD", "0.0"))
    (run_folder / "own.toml").write_text('[env]\nid = "cartpole"\n')
    run = Path(ask(capsys, "train", *words, *TINY, "--quiet")["run"])
    assert re.fullmatch(rf"{name}-\d{{8}}-\d{{6}}", run.name)


def test_presets_for_any_env_are_listed_first_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("train", "settings"):
        with pytest.raises(SystemExit):
            main([verb, "--help"])
        assert "presets: dqn, ppo, " in capsys.readouterr().out
    assert ask(capsys, "settings", "dqn", "--preset")["env"] == {"id": "any", "num_envs": 4}


def test_an_env_that_gives_nan_is_named_and_nothing_is_lost(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_folder / "bad.py").write_text(USER_ENV.replace("BAD_REWARD", "float('nan') if self.clock == 3 else 0.0"))
    said = fail(capsys, "train", "cartpole-dqn", *TINY, "--env.id", "bad.py:Corridor", "--run-dir", "bad", "--quiet")
    assert "reward" in said
    assert "envs check" in said


def test_a_full_disk_is_one_sentence(
    run_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "space" in fail(capsys, "train", "cartpole-dqn", *TINY, "--quiet")


def test_a_path_with_brackets_is_printed_as_it_is(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "cartpole-dqn", *TINY, "--run-dir", "[/b]z"]) == 0
    assert "[/b]z" in capsys.readouterr().out


def test_an_env_that_cannot_be_made_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert "CartPole-v1" in fail(capsys, "envs", "check", "CartPole")


def test_the_module_runs_as_a_program() -> None:
    answer = subprocess.run([sys.executable, "-m", "hotloop", "--help"], capture_output=True, text=True, check=True)
    assert "hotloop train" in answer.stdout


def test_progress_goes_to_stderr_and_data_to_stdout(run_folder: Path) -> None:
    command = [sys.executable, "-m", "hotloop", "train", "cartpole-dqn", *TINY, "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout)["env_steps"] == 400


FORBID_TORCH = """
import sys
class Forbid:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numba", "gymnasium"):
            raise SystemExit(f"importing {name}")
sys.meta_path.insert(0, Forbid())
from hotloop.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cartpole-dqm"], "did you mean `cartpole-dqn`?"),
        (["trpo"], "hotloop trains DQN"),
        (["DQN"], "did you mean `dqn`?"),
        (["rainbow"], "hotloop train cartpole-rainbow --env.id YourEnv-v0"),
        (["dqn"], "name one: `--env.id CartPole-v1`"),
        (["cartpole-dqn", "--learning-rate", "1e-3"], "did you mean `optimizer.learning_rate`"),
        (["cartpole-dqn", "--optimizer.learning-rate", "-1"], "`optimizer.learning_rate` is -1.0, expected above 0"),
        (["cartpole-dqn", "--env.id", "nav.py"], "give `nav.py:Nav`"),
        (["cartpole-dqn"], "cartpole-dqn: DQN on cartpole, 60,000 env steps; loading PyTorch\nimporting "),
    ],
)
def test_a_mistake_is_answered_and_a_run_announced_before_pytorch_is_imported(
    words: list[str], expected: str, run_folder: Path
) -> None:
    (run_folder / "nav.py").write_text("import nothing\n\nclass Nav:\n    def step(self): ...\n\nclass Map: ...\n")
    command = [sys.executable, "-c", FORBID_TORCH, "train", *words]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert expected in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_the_toml_of_all_settings_is_the_defaults_and_trains(
    algorithm: str, run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["settings", algorithm, "--toml"]) == 0
    text = capsys.readouterr().out
    (run_folder / "my.toml").write_text(text)
    defaults = {"dqn": hotloop.DQNSettings, "ppo": hotloop.PPOSettings}[algorithm]()
    assert hotloop.preset("my.toml") == defaults
    assert "# Discount per env step, 0 to 1.\ngamma = 0.99\n" in text
    few = ["--total-env-steps", "64", "--evaluation.episodes", "1", "--evaluation.final-episodes", "1"]
    few += ["--rollout-steps", "8", "--batch-size", "64"] if algorithm == "ppo" else []
    assert ask(capsys, "train", "my.toml", *few)["env_steps"] == 64


def test_settings_are_grouped_and_searched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "dqn"]) == 0
    text = capsys.readouterr().out
    tables = [line for line in text.splitlines() if line.startswith("[")]
    assert tables[:3] == ["[the run]", "[env]", "[network]"]
    assert len(tables) == len(set(tables))
    found = {row["path"] for row in ask(capsys, "settings", "dqn", "replay", "beta")["settings"]}
    assert found == {"replay.beta_start", "replay.beta_end", "replay.beta_env_steps"}
    assert "replay.buffer_size" in {
        row["path"] for row in ask(capsys, "settings", "dqn", "transitions", "kept")["settings"]
    }
    assert "did you mean `replay.buffer_size`" in fail(capsys, "settings", "dqn", "memory_size")
    assert "is a preset" in fail(capsys, "settings", "cartpole-dqn", "--toml")


def test_a_folder_that_is_not_there_has_no_runs_to_list(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no folder `nosuch`" in fail(capsys, "runs", "nosuch")
    assert main(["runs"]) == 0
    assert "hotloop train cartpole-dqn" in capsys.readouterr().out


def test_dates_and_numbers_in_runs_are_whole_on_a_narrow_terminal(
    run_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hotloop.runs.directory import Run

    monkeypatch.setenv("COLUMNS", "40")
    Run.create(None, "a-name-that-is-rather-long-for-so-few-columns", {"env": {"id": "LunarLander-v3"}}).close()
    assert main(["runs"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["started", "status"]
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d  ", row)
    assert "a-name-that-is-rather-long-for-so-few-columns" in row


def test_envs_check_says_what_it_did_not_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envs", "check", "CartPole-v1", "--env-steps", "3"]) == 0
    said = capsys.readouterr().out
    assert "not checked  a finished episode starts anew: no episode ended in 3 env steps" in said
    assert "not checked  action masks always allow something: it has no action masks" in said
    assert "ok           observations and rewards are finite" in said
    unchecked = [
        row for row in ask(capsys, "envs", "check", "CartPole-v1", "--env-steps", "300")["checks"] if not row["checked"]
    ]
    assert [row["name"] for row in unchecked] == [
        "action masks always allow something",
        "a saved state continues exactly",
    ]


def test_help_may_stand_before_a_verb_or_alone(capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in ((["help", "runs"], "usage: hotloop runs"), (["help"], "usage: hotloop VERB ...")):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 0
        assert capsys.readouterr().out.startswith(expected)
    assert "did you mean `train`?" in fail(capsys, "help", "trian")


def test_train_alone_says_what_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["train"], ["train", "--seed", "3"]):
        text = fail(capsys, *words)
        assert "needs a preset or a TOML file, and it stands first" in text
        assert "`hotloop train cartpole-dqn`" in text


@pytest.mark.parametrize("name", ["td3", "ddpg", "rainbow", "a2c"])
def test_an_algorithm_without_an_env_leads_to_a_command_that_trains(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"`hotloop (train [^`]+) --env.id YourEnv-v0`", fail(capsys, "train", name))
    assert found is not None
    short = ["--total-env-steps", "300", "--learning-starts", "100", *TINY[6:], "--run-dir", str(tmp_path / "run")]
    short = short if name != "a2c" else [*short[:2], *short[4:]]
    assert ask(capsys, *found[1].split(), *short, "--quiet")["env_steps"] >= 300


def test_names_of_settings_may_be_dotted_in_python() -> None:
    settings = hotloop.preset("cartpole-dqn", seed=2, env={"num_envs": 3}, **{"learner.lane": "eager", "env.id": "x"})
    assert (settings.learner.lane, settings.env.id, settings.env.num_envs, settings.seed) == ("eager", "x", 3, 2)
    with pytest.raises(hotloop.HotloopError, match=r"unknown setting `learner.lan`"):
        hotloop.preset("cartpole-dqn", **{"learner.lan": "eager"})
