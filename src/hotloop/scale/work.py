"""One run of a list on this machine: kept where it is finished, resumed where it is broken, else begun."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import tomli_w

from hotloop.core.arithmetic import arithmetic, differences
from hotloop.core.children import HOTLOOP, own_child
from hotloop.core.errors import RunError, SettingsError
from hotloop.core.places import Done, Task
from hotloop.core.program import ONE_THREAD
from hotloop.core.temporary import TemporaryFolder
from hotloop.core.user_files import SENT
from hotloop.doctor.recorder.order import EPISODES, Order
from hotloop.doctor.script.process import CHILD
from hotloop.runs import lock
from hotloop.runs.directory import LOCK, Run, is_run
from hotloop.runs.files import canonical_json, make_folder, read_json_table, require_real_folder, write_file
from hotloop.runs.listing import summarize
from hotloop.scale.joblist import JobList, ListedJob
from hotloop.scale.local import LocalPlace
from hotloop.scale.specs import Files, needs_trust, require_same, unpack

SCRIPT, ORDER, TRACE = "script.json", "order.json", "trace.json"
MOST_TRACE_BYTES = 64 * 2**20
FOREVER = 1e9
State = Literal["waiting", "stopped", "running", "finished"]


@dataclass(frozen=True)
class WorkOutcome:
    job: ListedJob
    path: Path
    kept: bool = False
    """Whether it was finished before."""
    error: str = ""

    def as_data(self) -> dict[str, Any]:
        data = {"index": self.job.index, "name": self.job.name, "run": str(self.path), "kept": self.kept}
        digest = None if self.error or not is_run(self.path) else Run.open(self.path).result().get("digest")
        return data | {"finished": not self.error, "digest": digest, "error": self.error or None}


def run_job(jobs: JobList, index: int, out: Path, *, trust: bool = False, mixed: bool = False) -> WorkOutcome:
    """Do one job of a list; its run lies in `out` under the job's own folder.

        outcome = run_job(read_list(Path("jobs.jsonl")), 3, Path("jobs"))

    Ctrl-C and SIGTERM end it with a checkpoint, and the same call continues it.
    """
    job = jobs.job(index)
    require_trust(job.spec, trust)
    path = place_in(out, job.folder)
    if state_of(job.spec, path) == "finished":
        return WorkOutcome(job, path, kept=True)
    require_same_machine(jobs.expects, mixed)
    with prepared(job.spec, path, jobs.folders) as task, closing(LocalPlace(1).run([task])) as news:
        for one in news:
            if isinstance(one, Done):
                return WorkOutcome(job, path, error=one.error)
    raise AssertionError("a task ends before its place does")


def states_of(jobs: JobList, out: Path) -> list[dict[str, Any]]:
    """How far each job is: `waiting`, `stopped` (it has a checkpoint or will begin anew), `running`, `finished`."""
    rows = []
    for job in jobs.jobs:
        path = place_in(out, job.folder)
        state = state_of(job.spec, path)
        env_steps = summarize(path).env_steps if is_run(path) else None
        rows.append({"job": job.index, "name": job.name, "state": state, "env_steps": env_steps, "run": str(path)})
    return rows


def place_in(out: Path, folder: str) -> Path:
    """Every folder on the way is a real one: a link would lead out of it."""
    path = out
    require_real_folder(out)
    for part in Path(folder).parts:
        path = path / part
        require_real_folder(path)
    return path


def require_trust(spec: Mapping[str, Any], trust: bool) -> None:
    if needs_trust(spec) and not trust:
        what = spec["script"] if spec["kind"] == "script" else spec["settings"]["env"]["id"]
        raise SettingsError(
            f"this job runs code that came with the list (`{what}`)", "pass `--trust` if you know where it comes from"
        )


def require_same_machine(expects: Mapping[str, Any], mixed: bool) -> None:
    """A machine that rounds in another way would give another digest."""
    found = [] if mixed else differences(expects, arithmetic())
    if found:
        raise RunError(
            f"this machine differs from the one that made the list: {'; '.join(found)}",
            "make them alike, or pass `--mixed`: the runs are good, but not the same bit by bit",
        )


def state_of(spec: Mapping[str, Any], path: Path) -> State:
    """RunError where something else lies there."""
    if spec["kind"] == "script":
        return "finished" if script_is_finished(spec["settings"], spec["seed"], path) else "waiting"
    if not is_run(path):
        return "waiting"
    run = Run.open(path)
    require_same(run, spec["settings"], spec["seed"])
    if run.finished:
        return "finished"
    return "running" if lock.is_held(path / LOCK) else "stopped"


def script_is_finished(settings: Mapping[str, Any], seed: int, folder: Path) -> bool:
    """Whether a run of it with this seed is there, whole. RunError where the folder holds another's."""
    if not (folder / SCRIPT).is_file():
        return False
    there, now = read_json_table(folder / SCRIPT), {**settings, "seed": seed}
    other = [name for name in now if there.get(name) != now[name]]
    if other:
        raise RunError(
            f"{folder} holds a run of another program: {', '.join(other[:3])} differ",
            "choose another folder with `--out`, or remove that run",
        )
    return script_run_ended_well(folder)


def is_script_run(folder: Path) -> bool:
    return (folder / SCRIPT).is_file()


def script_run_of(folder: Path) -> dict[str, Any]:
    """What tells the run of a script from others, with its seed: RunError where that cannot be read."""
    about = dict(read_json_table(folder / SCRIPT))
    if not isinstance(about.get("seed"), int) or not isinstance(about.get("script"), str):
        raise RunError(f"{folder / SCRIPT} names no script and seed", "remove that run; compare makes it anew")
    return about


def script_run_ended_well(folder: Path) -> bool:
    return (folder / TRACE).is_file() and read_trace(folder)["subject"].get("exit_code") == 0


def read_trace(folder: Path) -> Mapping[str, Any]:
    trace = read_json_table(folder / TRACE, MOST_TRACE_BYTES)
    if not isinstance(trace.get("subject"), dict) or not isinstance(trace.get("envs"), list):
        raise RunError(f"{folder / TRACE} is not what the recorder writes", "remove that run; it is made anew")
    return trace


@contextmanager
def prepared(
    spec: Mapping[str, Any], path: Path, folders: Mapping[str, Files], base: Path | None = None
) -> Iterator[Task]:
    """What trains it here, with the files that it needs in a folder of their own for as long as it takes."""
    make_folder(path.parent)
    with TemporaryFolder("job", base) as workshop:
        sent = {root: workshop / "sent" / str(number) for number, root in enumerate(spec["roots"])}
        for root, folder in sent.items():
            unpack(folders[root], folder)
        if spec["kind"] == "script":
            yield _script_task(spec, path, sent)
        else:
            yield _run_task(spec, path, workshop, sent)


def _run_task(spec: Mapping[str, Any], path: Path, workshop: Path, sent: Mapping[str, Path]) -> Task:
    trust = ("--trust",) if needs_trust(spec) else ()  # asked for before
    if is_run(path):
        words = ("resume", str(path), *trust)
    else:
        label = "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in spec["label"]).strip(".-") or "run"
        source = workshop / f"{label[:80]}.toml"  # a run is called by the name of its file
        source.write_bytes(tomli_w.dumps({**spec["settings"], "seed": spec["seed"]}).encode())
        words = ("train", str(source), "--run-dir", str(path), *trust)
    environment = dict.fromkeys(ONE_THREAD, "1")
    if sent:
        environment[SENT] = json.dumps({root: str(folder) for root, folder in sent.items()})
    command = own_child(HOTLOOP, *words, "--json", "--quiet")
    return Task(0, path.name, path, command, environment=environment, proof=partial(missing_of_run, path))


def missing_of_run(path: Path) -> str:
    """Of a run whose process has ended with exit code 0."""
    return Run.open(path).missing() if is_run(path) else "its process ended with exit code 0 and left no run"


def missing_of_script(settings: Mapping[str, Any], seed: int, path: Path) -> str:
    """Of a script's."""
    whole = script_is_finished(settings, seed, path)
    return "" if whole else "its process ended with exit code 0, and the recorder did not see it end"


def _script_task(spec: Mapping[str, Any], path: Path, sent: Mapping[str, Path]) -> Task:
    script = Path(spec["script"])
    here = sent[str(script.parent)] / script.name
    python = shutil.which(spec["python"]) if spec["python"] else sys.executable
    if python is None:
        raise RunError(f"there is no interpreter `{spec['python']}` on this machine", "install it, or name one that is")
    prepare_order(here, spec["arguments"], path, {**spec["settings"], "seed": spec["seed"]})
    command = (python, str(CHILD), str((path / ORDER).absolute()))
    proof = partial(missing_of_script, spec["settings"], spec["seed"], path)
    return Task(0, path.name, path, command, folder=here.parent, keeps_output=True, proof=proof)


def prepare_order(script: Path, arguments: Any, folder: Path, about: Mapping[str, Any]) -> None:
    """The note to the light recorder. A run cannot be continued in the middle: what a broken one left goes."""
    make_folder(folder)
    for name in ("events.jsonl", TRACE):
        (folder / name).unlink(missing_ok=True)
    order = Order(
        script=str(script),
        kind=EPISODES,
        seconds=FOREVER,
        patience=FOREVER,
        arguments=tuple(arguments),
        result=str((folder / TRACE).absolute()),
        lines=str((folder / "events.jsonl").absolute()),
    )
    write_file(folder / ORDER, order.as_json().encode())
    write_file(folder / SCRIPT, canonical_json(about))
