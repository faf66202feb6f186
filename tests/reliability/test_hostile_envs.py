"""What an env does (leave, print, hang, fork, raise) ends as one sentence or not at all, never as success."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import hotloop
from hotloop.cli.main import main
from hotloop.core.errors import EnvError
from hotloop.core.interrupts import own_interrupts
from hotloop.envs.registry import make_envs
from hotloop.presets.env_settings import EnvSettings
from tests.envs import planted_hostile_envs

FILE = Path(planted_hostile_envs.__file__)
TINY: dict[str, Any] = {
    "total_env_steps": 600,
    "learning_starts": 50,
    "batch_size": 8,
    "network": {"hidden": [8]},
    "evaluation": {"every": 600, "episodes": 2, "final_episodes": 2},
    "checkpoint": {"every": 100},
}
WORDS = [
    *["--total-env-steps", "600", "--learning-starts", "50", "--batch-size", "8", "--network.hidden", "8"],
    *["--evaluation.every", "600", "--evaluation.episodes", "2", "--evaluation.final-episodes", "2"],
    *["--env.num-envs", "2", "--checkpoint.every", "100", "--quiet"],
]
SOON = (
    "import hotloop.loop.watchdog as watchdog, hotloop.loop.machine as stopping\n"
    "watchdog.STOP_SECONDS, stopping.WORKER_SECONDS = 2, 1\n"
    "from hotloop.cli.main import main\n"
    "raise SystemExit(main())\n"
)
"""The program with a shorter patience."""


def train(name: str, folder: Path, workers: int = 0, **options: Any) -> dict[str, Any]:
    env = {"id": f"{FILE}:{name}", "num_envs": 2, "workers": workers, "options": options}
    return hotloop.train(hotloop.preset("cartpole-dqn", **TINY, env=env, run_dir=str(folder)))


def program(name: str, run_dir: Path, *words: str, code: str = "", **options: Any) -> subprocess.Popen[str]:
    start = [sys.executable, "-c", code] if code else [sys.executable, "-m", "hotloop"]
    chosen = [text for key, value in options.items() for text in (f"--env.options.{key}", str(value))]
    command = [*start, "train", "cartpole-dqn", "--env.id", f"{FILE}:{name}", *WORDS, *chosen, *words]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, "--run-dir", str(run_dir)], stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Exits", r"env 0 tried to end the program with exit code 0 in `step`, after 39 steps of each env, given"),
        ("Interrupts", r"env 0 raised KeyboardInterrupt in `step`, after 39 steps"),
        ("EndsGenerator", r"env 0 raised GeneratorExit in `step`, after 39 steps"),
        ("Cancels", r"env 0 raised CancelledError in `step` \(not now\), after 39 steps"),
        ("ExitsInReset", r"env 0 tried to end the program with exit code 0 in `reset`, after 9 steps"),
        ("ExitsMade", r"could not be made: tried to end the program with exit code 0"),
        ("ExitsAsArray", r"env 0 tried to end the program with exit code 0 in `step`"),
        ("RaisesUnspeakable", r"env 0 raised Unspeakable in `step` \(its text cannot be read\)"),
        ("RaisesDeep", r"raised RecursionError in `step` \(maximum recursion(.|\n)* more \.\.\."),
    ],
)
def test_no_way_out_of_an_env_is_a_finished_run(name: str, expected: str, tmp_path: Path) -> None:
    options = {} if name == "ExitsMade" else {"at": 40}
    with pytest.raises(EnvError, match=expected) as caught:
        train(name, tmp_path / "run", **options)
    assert f"\n    {FILE}:" in caught.value.message
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Exits", "with exit code 3"), pytest.param("Interrupts", "KeyboardInterrupt", marks=pytest.mark.slow)],
)
def test_a_worker_s_env_that_leaves_is_told_as_in_process(name: str, expected: str) -> None:
    settings = EnvSettings(id=f"{FILE}:{name}", num_envs=2, workers=2, options={"at": 3, "code": 3})
    envs = make_envs(settings, 2, np.arange(2, dtype=np.uint64))
    envs.reset()
    for _ in range(2):
        envs.step(np.ones(2, np.int64))
    with pytest.raises(EnvError, match=f"env 0 .*{expected}.* in `step`, after 2 steps of each env, given action 1"):
        envs.step(np.ones(2, np.int64))
    envs.close()


def test_an_env_that_leaves_when_it_is_closed_changes_nothing(tmp_path: Path) -> None:
    assert train("ExitsClosing", tmp_path / "run")["env_steps"] == 600


def test_an_env_that_leaves_past_python_s_own_way_out_is_an_error_of_the_program(tmp_path: Path) -> None:
    process = program("ExitsUnderneath", tmp_path / "run", at=40)
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 2
    assert not said
    assert "env 0 tried to end the program with exit code 0 in `step`" in errors
    assert "os._exit(self.code)" in errors


def test_an_env_that_closes_our_files_is_told_in_one_sentence(tmp_path: Path) -> None:
    process = program("ClosesFiles", tmp_path / "run", at=40)
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 2
    assert not said
    assert errors.startswith(
        "error: a file that the run had open was closed by other code in this process, most likely"
    )
    assert "hint: let it close only what it opened itself" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("code", [0, 3])
def test_a_thread_that_leaves_past_python_s_own_way_out_is_an_error_of_the_program(code: int, tmp_path: Path) -> None:
    process = program("ExitsInThread", tmp_path / "run", "--env.options.code", str(code), at=40)
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 2
    assert not said
    assert re.search(
        rf"error: a thread tried to end the program with exit code {code}, which ends it: .*in <lambda>", errors
    )
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize("name", ["ExitsInC", "ExitsInThread"])
def test_a_job_that_ends_with_code_0_is_not_finished_by_that(name: str, tmp_path: Path) -> None:
    env = ["--env.id", f"{FILE}:{name}", "--env.options.at", "40", *WORDS[:-1]]
    arms = ["compare", "cartpole-dqn", "--seeds", "1", "--out", str(tmp_path / "arms"), "--", *env]
    assert main([*arms[:4], "--plan", str(tmp_path / "jobs.jsonl"), *arms[4:]]) == 0
    begin = [sys.executable, "-m", "hotloop"]
    job = [*begin, "job", "run", str(tmp_path / "jobs.jsonl"), "--index", "0", "--trust", "--json"]
    done = subprocess.run(job, capture_output=True, text=True, timeout=200)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["finished"], answer["digest"]) == (1, False, None)
    expected = "left no result: something in it ended the program" if name == "ExitsInC" else "a thread tried to end"
    assert expected in done.stderr
    if name == "ExitsInC":
        done = subprocess.run([*begin, *arms], capture_output=True, text=True, timeout=200)
        assert done.returncode != 0
        assert expected in done.stderr


def test_control_c_in_an_env_is_still_control_c() -> None:
    """The same exception, raised by a signal: `own_interrupts` is what the program runs under."""
    envs = make_envs(EnvSettings(id=f"{FILE}:Interrupts", options={"at": 3}), 1, np.zeros(1, np.uint64))
    envs.reset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with own_interrupts():
        envs._steps[0] = lambda action: os.kill(os.getpid(), signal.SIGINT)  # type: ignore[attr-defined]
        with pytest.raises(KeyboardInterrupt):
            envs.step(np.zeros(1, np.int64))
    envs.close()


def test_an_exception_shows_the_user_s_own_lines_and_debug_all_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "cartpole-dqn", "--env.id", f"{FILE}:Raises", *WORDS, "--env.options.at", "40"]
    source = FILE.read_text().splitlines()
    raising = source.index("        return 1 / divisor") + 1
    assert main([*words, "--run-dir", str(tmp_path / "one")]) == 2
    said = capsys.readouterr().err
    assert re.search(r"env 0 raised ZeroDivisionError in `step` \(division by zero\), after 39 .* action [01]\n", said)
    assert f"\n    {FILE}:{raising} in compute_reward: return 1 / divisor\n" in said
    assert "in trouble: self.compute_reward(0)\n" in said
    assert "hotloop/" not in said.replace(str(FILE), "")
    assert said.count("hint:") == 1
    assert "hint: mend the line named last; `--debug` shows the whole traceback" in said
    assert "Traceback" not in said
    for workers in ("0", "1"):
        assert main([*words, "--env.workers", workers, "--run-dir", str(tmp_path / workers), "--debug"]) == 2
        said = capsys.readouterr().err
        assert "Traceback (most recent call last)" in said
        assert said.count("gymnasium_envs.py") > 0
        assert "\nerror: `" in said
        assert f"{FILE}:{raising} in compute_reward" in said


def test_escape_codes_in_an_exception_are_shown_as_text(tmp_path: Path) -> None:
    with pytest.raises(EnvError) as caught:
        train("RaisesEscapes", tmp_path / "run", at=40)
    assert "\x1b" not in caught.value.message
    assert "\x07" not in caught.value.message
    assert r"\x1b[2J\x1b]0;owned\x07 gone\nerror: a second line" in caught.value.message


FORKING = """
import os, sys
import numpy as np
from hotloop.envs.registry import make_envs
from hotloop.presets.env_settings import EnvSettings
envs = make_envs(EnvSettings(id=sys.argv[1], options={"at": 3, "folder": sys.argv[2]}), 1, np.zeros(1, np.uint64))
envs.reset()
for _ in range(5):
    envs.step(np.zeros(1, np.int64))
envs.close()
os.write(1, b"done\\n")
"""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ForksBelow", 1),
        ("ForksAndExits", 0),
        *[pytest.param(name, 1, marks=pytest.mark.slow) for name in ("Forks", "ForksClosing")],
    ],
)
def test_a_forked_child_that_comes_back_is_ended(name: str, told: int, tmp_path: Path) -> None:
    words = [sys.executable, "-c", FORKING, f"{FILE}:{name}", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert len(list(tmp_path.glob("child-*"))) == 1
    assert done.stderr.count("a process that the env forked came back from the env's code; it was ended") == told


@pytest.mark.slow
def test_a_run_whose_env_forks_is_the_run_of_one_trainer(tmp_path: Path) -> None:
    process = program("Forks", tmp_path / "run", "--json", at=40, folder=tmp_path)
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    assert list(tmp_path.glob("child-*"))
    rows = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert [row["event"] for row in rows].count("start") == 1
    assert len({json.dumps(row) for row in rows}) == len(rows)
    assert json.loads(said)["digest"] == train("Forks", tmp_path / "plain", at=-1)["digest"]


def test_what_an_env_prints_stays_out_of_the_answer_and_a_warning_comes_once(tmp_path: Path) -> None:
    process = program("Prints", tmp_path / "run", "--json", at_exit=True)
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    assert json.loads(said)["env_steps"] == 600
    for text in ("a constructor", "python", "the first stdout", "the descriptor", "C", "close", "the end"):
        assert f"{text} print" in errors
    assert errors.count("UserWarning: the simulation is unstable") == 1


@pytest.mark.filterwarnings("ignore:the simulation is unstable")
def test_other_verbs_and_workers_keep_their_answers_clean_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    words = ["train", "cartpole-dqn", "--env.id", f"{FILE}:Prints", *WORDS, "--env.workers", "1", "--json"]
    verbs = [
        [*words, "--checkpoint.every", "600", "--run-dir", run],
        ["evaluate", run, "--episodes", "3", "--trust", "--json"],
        ["watch", run, "--trust", "--json"],
        ["envs", "check", f"{FILE}:Prints", "--env-steps", "60", "--json"],
    ]
    for verb in verbs:
        assert main(verb) in (0, 1)
        said = capfd.readouterr()
        assert json.loads(said.out)
        assert "C print" in said.err
    print("stdout is as it was")
    assert capfd.readouterr().out == "stdout is as it was\n"


def hang(name: str, run_dir: Path, number: int, *words: str) -> tuple[int, str]:
    """Exit code and last words of a run that is sent `number` while its env hangs."""
    process = program(name, run_dir, *words, code=SOON, at=40)
    assert process.stderr is not None
    while (line := process.stderr.readline()) and line != "hanging\n":
        pass
    time.sleep(0.2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("HangsInC", signal.SIGTERM),
        pytest.param("HangsBusy", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("HangsBusy", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("HangsSleeping", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("HangsOnLock", signal.SIGTERM, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_run_whose_env_hangs_ends_when_it_is_asked_to(name: str, number: int, tmp_path: Path) -> None:
    code, errors = hang(name, tmp_path / "run", number)
    assert code == -signal.SIGKILL
    assert f"the run did not end within 2 s of {signal.Signals(number).name}: `{FILE}:{name}` hangs" in errors
    assert re.search(rf'\n    File "{FILE}", line \d+ in trouble\n    File "{FILE}", line \d+ in step\n\nhint:', errors)
    assert "Traceback" not in errors


@pytest.mark.slow
def test_a_worker_that_hangs_does_not_hold_up_a_run_that_is_asked_to_stop(tmp_path: Path) -> None:
    code, errors = hang("HangsBusy", tmp_path / "run", signal.SIGTERM, "--env.workers", "1")
    assert code == 2
    assert "the worker process of envs 0-1 did not answer when the run was asked to stop, after 39 steps" in errors
    assert "in trouble" in errors


@pytest.mark.slow
def test_an_env_that_hangs_in_close_does_not_hold_up_the_end(tmp_path: Path) -> None:
    code, errors = hang("HangsClosing", tmp_path / "run", signal.SIGTERM)
    assert code == -signal.SIGKILL
    assert " in close\n" in errors


def test_a_healthy_run_of_a_foreign_env_leaves_no_watcher_behind(tmp_path: Path) -> None:
    own = psutil.Process()
    before = own.num_fds(), own.children()
    wakeup = signal.set_wakeup_fd(-1)
    train("ExitsClosing", tmp_path / "run")
    assert signal.set_wakeup_fd(wakeup) == -1
    assert (own.num_fds(), own.children()) == before
