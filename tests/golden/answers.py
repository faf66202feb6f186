"""What verbs answer with `--json`, what the pages of hand-written runs are made of (times and paths left out), and how
far fast and plain are apart in a few cases of `benchmarks/`."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import hotloop
from benchmarks.all_cases import small_cases
from hotloop.cli.main import main
from hotloop.comparison.jobs import plan_jobs
from hotloop.comparison.page import as_html
from hotloop.comparison.report import Question, collect
from hotloop.doctor.views import page
from hotloop.loop.machine import machine_for
from tests.comparison import synthetic_runs
from tests.doctor.sample_trace import FINDINGS, make_trace
from tests.reporting import written_runs

FILE = Path(__file__).with_name("answers.json")
TINY = ["--total-env-steps", "300", "--learning-starts", "100", "--batch-size", "8", "--network.hidden", "8"]
TINY += ["--evaluation.every", "100", "--evaluation.episodes", "2", "--evaluation.final-episodes", "3", "--quiet"]
VERBS = {
    "train": ["train", "cartpole-dqn", *TINY, "--run-dir", "run"],
    "resume": ["resume", "run"],
    "evaluate": ["evaluate", "run", "--episodes", "3"],
    "runs": ["runs", "."],
    "envs": ["envs"],
    "envs check": ["envs", "check", "cartpole", "--env-steps", "60"],
    "settings": ["settings", "ppo", "clip"],
}
PROVED = ("dqn-update/dqn/native/8x8-b4", "multi-batch/k2/native/8x8-b4", "target-polyak/eager/8x8", "n-step/n3-envs1")
PROVED += ("gae/T16-N3", "ppo-update/discrete/eager/8x8-b16", "replay-prioritized/b32")
PROVED += ("ppo-update/discrete/native/8x8-b16", "topology-forward/14-nodes-k4-b4", "graph-forward/outputs/n5")
PROVED += ("branch-attention/forward/native/b32",)


def answers() -> dict[str, Any]:
    """In an empty working directory."""
    return {name: shape(answer(words)) for name, words in VERBS.items()}


def answer(words: list[str]) -> Any:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        assert main([*words, "--json"]) == 0
    return json.loads(said.getvalue())


def shape(value: Any) -> Any:
    """Keys and kinds of value; of a list the kinds of its members, each once."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        kinds = [shape(one) for one in value]
        return [one for place, one in enumerate(kinds) if one not in kinds[:place]]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


class Skeleton(HTMLParser):
    """Headings with their digits blotted out, and the elements that there are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.headings: list[str] = []
        self._in_heading = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags[tag] += 1
        if re.fullmatch("h[1-6]", tag):
            self._in_heading = True
            self.headings.append(f"{tag} ")

    def handle_endtag(self, tag: str) -> None:
        self._in_heading = self._in_heading and not re.fullmatch("h[1-6]", tag)

    def handle_data(self, data: str) -> None:
        if self._in_heading:
            self.headings[-1] += re.sub(r"\d+", "#", data)


def pages(folder: Path) -> dict[str, Any]:
    written_runs.write_run(folder / "run")
    arms = [synthetic_runs.make_arm(label, total_env_steps=200) for label in ("one", "other")]
    for arm in arms:
        for seed in (0, 1):
            synthetic_runs.write_run(folder / arm.folder / f"seed-{seed}", arm, seed, [10.0, 60.0 + seed])
    question = Question("hotloop compare one other --seeds 2", "mean_return", 50.0, 2, workers=2, cores=4)
    texts = {
        "report": hotloop.report(folder / "run", write=False).html,
        "doctor": str(page(make_trace(), FINDINGS)),
        "compare": str(as_html(collect(question, plan_jobs(arms, 2, folder)))),
    }
    skeletons = {name: Skeleton(text) for name, text in texts.items()}
    return {
        name: {
            "headings": found.headings,
            "counted": {tag: found.tags[tag] for tag in ("section", "svg", "table")},
            "tags": " ".join(sorted(found.tags)),
        }
        for name, found in skeletons.items()
    }


def errors() -> dict[str, float]:
    """The largest differences that `hotloop prove` would find."""
    with machine_for(threads=1):
        cases = {case.name: case for case in small_cases()}
        return {name: cases[name].build().check().max_error for name in PROVED}
