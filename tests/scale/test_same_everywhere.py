"""The command line on clusters of several nodes: the same bytes as on this machine, trials pruned wherever they run."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest

from tests.scale.clusters import TINY, left_behind, several_nodes

pytestmark = pytest.mark.slow
SEEDS = 3
ARMS = ["a=cartpole-dqn", "b=cartpole-dqn --gamma 0.9", "--seeds", str(SEEDS)]
LEARNING = [
    *("--total-env-steps", "300k", "--evaluation.every", "30k", "--evaluation.episodes", "5"),
    *("--evaluation.final-episodes", "5", "--checkpoint.every", "60k"),
]


def hotloop(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "hotloop", *words], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def compared(folder: Path, out: str, *words: str) -> tuple[str, dict[str, str]]:
    """`compare.json` byte by byte but for its circumstances, and every run's digest."""
    hotloop(folder, "compare", *ARMS, "--out", out, "--quiet", *words, "--", *TINY)
    return result(folder / out)


def result(folder: Path) -> tuple[str, dict[str, str]]:
    text = (folder / "compare.json").read_text()
    rest, count = re.subn(r'\n  "circumstances": \{.*?\n  \}', "", text, flags=re.DOTALL)
    assert (count, rest.startswith("{"), len(rest) > 1000) == (1, True, True)
    runs = sorted(folder.glob("*/seed-*/result.json"))
    assert len(runs) == 2 * SEEDS
    return rest, {str(path.relative_to(folder)): json.loads(path.read_text())["digest"] for path in runs}


def nodes_of(folder: Path) -> set[str]:
    return {json.loads(path.read_text())["node"] for path in folder.glob("*/seed-*/run.json")}


def test_compare_writes_the_same_bytes_wherever_it_trains(tmp_path: Path) -> None:
    here = compared(tmp_path, "here", "--on", "local", "--workers", "2")
    plan = ["compare", *ARMS, "--quiet", "--plan", "jobs.jsonl", "--", *TINY]
    hotloop(tmp_path, *plan)
    for index in range(2 * SEEDS):
        hotloop(tmp_path, "job", "run", "jobs.jsonl", "--index", str(index))
    hotloop(tmp_path, *plan)
    assert result(tmp_path / "jobs") == here
    assert compared(tmp_path, "ray", "--on", "ray", "--workers", "2") == here
    assert len(nodes_of(tmp_path / "ray")) == 1
    for nodes in (1, 3):
        with several_nodes(nodes, join=False) as (made, _):
            assert compared(tmp_path, f"nodes-{nodes}", "--on", made.address) == here
        assert len(nodes_of(tmp_path / f"nodes-{nodes}")) == nodes
    assert left_behind() == []


def trials_of(folder: Path) -> list[Any]:
    """What the study knows: values, states and scores on the way, all but the clock."""
    study = optuna.load_study(study_name="tune", storage=f"sqlite:///{folder / 'study.db'}")
    return [(one.params, one.state.name, one.value, one.intermediate_values) for one in study.get_trials()]


def test_a_trial_is_pruned_on_another_node_as_it_would_be_here(tmp_path: Path) -> None:
    words = [
        "tune",
        "cartpole-dqn",
        *LEARNING,
        "--search",
        "optimizer.learning_rate=1e-3,7e-4,5e-4,1e-9",
        "--trials",
        "12",
        "--workers",
        "1",
    ]
    hotloop(tmp_path, *words, "--storage", "here", "--json")
    with several_nodes(2, join=False) as (made, _):
        found = json.loads(hotloop(tmp_path, *words, "--storage", "there", "--on", made.address, "--json"))
    assert left_behind() == []
    assert trials_of(tmp_path / "there") == trials_of(tmp_path / "here")
    pruned = [number for number, one in enumerate(trials_of(tmp_path / "there")) if one[1] == "PRUNED"]
    print(f"{len(pruned)} of 12 trials were pruned; best: {found['best']}")
    assert pruned
    for number in pruned:
        run = tmp_path / "there" / f"trial-{number:04d}" / "seed-0"
        assert json.loads((run / "run.json").read_text())["node"].startswith(f"{socket.gethostname()}-")
        assert not (run / "result.json").exists(), "it was ended in the middle"
        assert last_steps(run) < 300_000


def last_steps(run: Path) -> int:
    rows: Sequence[Any] = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    return max(row["env_steps"] for row in rows if "env_steps" in row)


def refused(words: Sequence[str], folder: Path, first: str = "", **environment: str) -> tuple[int, str]:
    """Exit code, and what was said on stderr; `first` is done before the command, in its process."""
    program = f"import sys\n{first}\nfrom hotloop.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_a_wrong_token_another_ray_or_another_fingerprint_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "wrong").touch(mode=0o600)
    (tmp_path / "wrong").write_text("0" * 64)
    with several_nodes(1, join=False, env_vars={"ATEN_CPU_CAPABILITY": "default"}) as (made, _):
        words = ["compare", *ARMS, "--on", made.address, "--quiet", "--out", "no", "--", *TINY]
        answers = {
            "cannot take part: vector unit DEFAULT instead of ": refused(words, tmp_path),
            "refused our token": refused(words, tmp_path, RAY_AUTH_TOKEN_PATH=str(tmp_path / "wrong")),
            "another version of Ray": refused(words, tmp_path, first="import ray; ray.__version__ = '9.9.9'"),
        }
    for expected, (code, text) in answers.items():
        print(text)
        assert code == 2
        assert expected in text
        assert text.startswith("error: ")
        assert len([line for line in text.splitlines() if line]) <= 2, "a sentence, and maybe a hint"
    assert left_behind() == []
