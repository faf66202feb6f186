"""Real scripts, each over in a moment: what the recorder sees of them and how it takes every ending."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from hotloop.core.errors import SettingsError
from hotloop.doctor.script import ScriptPlan, record_script

AT_EXIT = "import atexit, os; atexit.register"
ENV = """
class Corridor:
    def reset(self):
        self.place = 0
        return self.place

    def step(self, action):
        self.place += 1
        return self.place, 1.0, self.place >= 5, {}

env = Corridor()
env.reset()
"""
QUICK = {"counting": False, "threads": False}


def record(tmp_path, text, *arguments, **plan):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(text))
    return record_script(script, arguments, ScriptPlan(**{**QUICK, **plan}), lambda _: None)


def test_env_steps_and_episodes_of_a_plain_class_are_counted(tmp_path):
    trace = record(tmp_path, ENV + "for _ in range(10):\n    if env.step(0)[2]:\n        env.reset()\n")
    assert (trace.counts.env_steps, trace.counts.env_calls, trace.counts.episodes) == (10, 10, 2)
    assert (trace.subject.ending, trace.subject.exit_code) == ("finished", 0)
    assert sum(trace.phases.values()) == pytest.approx(trace.seconds)
    assert sum(part.env_steps for part in trace.timeline) == 10
    assert any("__main__.Corridor" in note for note in trace.notes)


def test_what_is_pickled_to_a_file_is_a_checkpoint(tmp_path):
    saving = "    pickle.dump(rows, file)\n"
    text = ENV + f"import pickle\nrows = list(range(20_000))\nfile = open({str(tmp_path / 'rows.pkl')!r}, 'wb')\n"
    trace = record(tmp_path, text + "for _ in range(50):\n    env.step(0)\n" + saving)
    assert trace.phases["checkpoint"] > 0.5 * trace.loop_seconds


def test_the_script_finds_itself_as_it_would_without_the_doctor(tmp_path):
    text = """
    import sys
    from pathlib import Path
    assert __name__ == "__main__" and sys.modules["__main__"].__dict__ is globals()
    assert sys.argv[1:] == ["--rate", "0.1"], sys.argv
    assert Path(__file__).name == Path(sys.argv[0]).name == "train.py"
    assert Path(sys.path[0]).samefile(Path(__file__).parent)
    import beside
    assert not {"numpy", "torch", "gymnasium"} & set(sys.modules)
    sys.exit(7)
    """
    (tmp_path / "beside.py").write_text("")
    trace = record(tmp_path, text, "--rate", "0.1")
    assert (trace.subject.ending, trace.subject.exit_code, trace.subject.error) == ("exited", 7, "")
    assert not (tmp_path / "__pycache__" / "train.cpython-311.pyc").exists()


def test_a_bound_on_env_steps_ends_the_script_even_where_it_catches_everything(tmp_path):
    text = ENV + "while True:\n    try:\n        env.step(0)\n    except BaseException:\n        break\n"
    trace = record(tmp_path, text, env_steps=50)
    assert (trace.subject.ending, trace.subject.exit_code, trace.counts.env_steps) == ("limit", None, 50)


def test_a_bound_on_time_ends_the_script(tmp_path):
    trace = record(tmp_path, ENV + "while True:\n    env.step(0)\n", seconds=0.2)
    assert trace.subject.ending == "limit"
    assert 0.2 <= trace.loop_seconds + trace.phases["recording"] + trace.phases.get("queued", 0.0) < 5
    assert 50 <= len(trace.timeline) <= 200


@pytest.mark.parametrize(
    ("last", "ending", "code", "error"),
    [
        ("raise ValueError('no more')", "crashed", 1, "ValueError: no more"),
        ("raise SystemExit('enough')", "exited", 1, "enough"),
        ("raise SystemExit(257)", "exited", 1, ""),
        ("raise SystemExit(-1)", "exited", 255, ""),
        ("raise SystemExit(2**70)", "exited", 255, ""),
        ("import os; os._exit(4)", "exited", 4, "the script called os._exit"),
        ("import os; os._exit(259)", "exited", 3, "the script called os._exit"),
        (f"{AT_EXIT}(lambda: os._exit(3))", "exited", 3, "the code that runs at exit ended the process with 3"),
        (f"{AT_EXIT}(os.abort)", "crashed", -6, "the code that runs at exit ended the process with -6"),
        (f"{AT_EXIT}(lambda: os._exit(3)); raise ValueError('no')", "crashed", 3, "ValueError: no"),
        ("raise KeyboardInterrupt", "interrupted", 130, "KeyboardInterrupt"),
        ("import os; os.abort()", "crashed", -6, "the process ended with -6 before anything could be saved"),
    ],
)
def test_every_ending_leaves_a_trace(tmp_path, last, ending, code, error):
    trace = record(tmp_path, ENV + f"env.step(0)\n{last}\n")
    assert (trace.subject.ending, trace.subject.exit_code, trace.subject.error) == (ending, code, error)
    assert trace.counts.env_steps == (0 if "os.abort()" in last else 1)


@pytest.mark.parametrize(
    "refused", [b"# caf\xe9\n", b"x = 1\n\n\n# caf\xe9\n", b"# coding: ascii\n# caf\xc3\xa9\n", b"# coding: nosuch\n"]
)
def test_a_file_that_python_refuses_for_its_encoding_is_not_run(tmp_path, refused):
    script = tmp_path / "train.py"
    script.write_bytes(refused + b"open('ran', 'w')\n")
    python = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True)
    trace = record_script(script, (), ScriptPlan(**QUICK), lambda _: None)
    assert (trace.subject.ending, trace.subject.exit_code) == ("crashed", python.returncode)
    assert trace.subject.error.startswith("SyntaxError")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("read", [b"# coding: latin-1\n# caf\xe9\n", b"\xef\xbb\xbf# caf\xc3\xa9\n", b""])
def test_a_file_in_another_encoding_that_it_declares_is_run(tmp_path, read):
    script = tmp_path / "train.py"
    script.write_bytes(read + b"raise SystemExit(7)\n")
    assert record_script(script, (), ScriptPlan(**QUICK), lambda _: None).subject.exit_code == 7


def test_an_interrupt_reaches_the_script_and_the_report_is_still_made(tmp_path):
    (tmp_path / "train.py").write_text(ENV + "print('on', flush=True)\nwhile True:\n    env.step(0)\n")
    program = (
        "from pathlib import Path; from hotloop.doctor.script import *\n"
        "trace = record_script(Path('train.py'), (), ScriptPlan(), lambda _: None)\n"
        "print(trace.subject.ending, trace.counts.env_steps > 0, len(trace.calls))"
    )
    doctor = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert doctor.stderr.readline() == "on\n"  # the script's output, never on the doctor's stdout
    time.sleep(0.1)
    os.killpg(doctor.pid, signal.SIGINT)
    assert doctor.communicate(timeout=60)[0] == "interrupted True 0\n"


def test_a_script_without_an_env_says_so(tmp_path):
    trace = record(tmp_path, "print('hello')")
    assert trace.counts.env_steps == 0
    assert list(trace.phases) == ["start-up"]
    assert "name yours with --env" in trace.notes[0]


def test_a_script_that_never_steps_an_env_is_not_waited_for_for_ever(tmp_path):
    trace = record(tmp_path, "import time\nwhile True:\n    time.sleep(0.01)\n", patience=0.5)
    assert trace.subject.ending == "limit"


def test_a_function_can_be_named_as_the_env(tmp_path):
    text = "def advance(x):\n    return x + 1\nx = 0\nfor _ in range(6):\n    x = advance(x)\nassert x == 6\n"
    assert record(tmp_path, text, env_classes=("advance",)).counts.env_steps == 6


def test_a_function_of_another_module_and_a_method_can_be_named(tmp_path):
    (tmp_path / "world.py").write_text(
        "def advance(x):\n    return x + 1\nclass Game:\n    def play(self, x):\n        return 2.0, x > 1, 3\n"
    )
    text = "from world import advance, Game\nfor x in range(4):\n    advance(x)\n    Game().play(x)\n"
    assert record(tmp_path, text, env_classes=("world:advance",)).counts.env_steps == 4
    game = record(tmp_path, text, env_classes=("Game.play",)).counts
    assert (game.env_steps, game.episodes) == (4, 2)


def test_what_only_looks_like_an_env_is_left_alone(tmp_path):
    agent = "class Agent:\n    def reset(self): ...\n    def step(self, x): return None\n"
    trace = record(tmp_path, ENV + agent + "for _ in range(3):\n    Agent().step(0)\n    env.step(0)\n")
    assert trace.counts.env_steps == 3


def test_rewards_in_an_array_are_as_many_env_steps(tmp_path):
    text = """
    import numpy as np
    class Many:
        def reset(self): return np.zeros(8)
        def step(self, action):
            done = np.arange(8) < 2
            return np.zeros(8), np.ones(8), done, np.zeros(8, bool), {}
    class Wrapper:
        def __init__(self, env): self.env = env
        def reset(self): return self.env.reset()
        def step(self, action): return self.env.step(action)
    env = Wrapper(Many())
    for _ in range(5):
        env.step(0)
    """
    counts = record(tmp_path, text).counts
    assert (counts.env_steps, counts.env_calls, counts.episodes, counts.envs) == (40, 5, 10, 1)


def test_workers_forked_by_the_script_are_not_recorded(tmp_path):
    text = (
        ENV
        + """
import multiprocessing, sys
def work(count):
    for _ in range(count):
        env.step(0)
    return 0
if __name__ == "__main__":
    env.step(0)
    worker = multiprocessing.get_context("fork").Process(target=work, args=(100,))
    worker.start(); worker.join()
    sys.exit(worker.exitcode)
"""
    )
    trace = record(tmp_path, text)
    assert (trace.counts.env_steps, trace.subject.exit_code) == (1, 0)


def test_classes_sent_to_workers_by_value_work_there_without_the_doctor(tmp_path):
    text = (
        ENV
        + """
import subprocess, sys
import cloudpickle
env.step(0)
program = "import sys, pickle; env = pickle.load(sys.stdin.buffer); print(env.step(0)[0], 'hotloop' in sys.modules)"
done = subprocess.run([sys.executable, "-c", program], input=cloudpickle.dumps(env), capture_output=True)
assert done.stdout == b"2 False\\n", done
"""
    )
    pytest.importorskip("cloudpickle")
    assert record(tmp_path, text).subject.error == ""


def test_a_missing_script_is_the_users_mistake(tmp_path):
    with pytest.raises(SettingsError, match="no script"):
        record_script(tmp_path / "gone.py", (), ScriptPlan(), print)


def test_calls_are_counted_by_line_with_the_size_of_what_they_work_on(tmp_path):
    text = (
        ENV
        + """
import copy, heapq, random
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
rows, heap = [], []
for _ in range(12):
    env.step(0)
    rows.insert(0, 1)
    copy.deepcopy([1])
    heapq.heappush(heap, 1)
    print("a")
    random.sample(range(5), 2)
    fib(3)
"""
    )
    trace = record(tmp_path, text, counting=True)
    found = {call.name: call for call in trace.calls}
    line = text.count("\n", 0, text.index("rows.insert")) + 1
    steps = trace.counted.env_steps
    assert steps == 11  # counting begins after the first env step
    insert = found["list.insert"]
    assert (insert.where, insert.count, insert.largest, insert.phase) == (f"train.py:{line}", 12, 11, "other")
    for name in ("copy.deepcopy", "heapq.heappush", "builtins.print", "random.sample"):
        assert found[name].count == 12, name
        assert found[name].where.startswith("train.py:")
    assert found["user:Corridor.step"].count == steps
    assert found["user:fib"].count == 12 * 5
    assert found["recursive:fib"].count == 12 * 4


def test_calls_into_a_graph_library_keep_the_names_people_write(tmp_path):
    pytest.importorskip("networkx")
    text = (
        ENV
        + """
import networkx
graph = networkx.DiGraph([(0, 1), (1, 2)])
for _ in range(4):
    env.step(0)
    list(networkx.all_simple_paths(graph, 0, 2))
    list(graph.predecessors(2))
"""
    )
    trace = record(tmp_path, text, counting=True)
    for name in ("networkx.all_simple_paths", "networkx.DiGraph.predecessors"):
        (call,) = trace.calls_named(name)
        assert call.count == 4


def test_lines_are_sampled_where_the_time_goes(tmp_path):
    text = (
        ENV
        + """
def burn():
    total = 0
    for i in range(20_000):
        total += i % 7
    return total
while True:
    env.step(0)
    burn()
"""
    )
    trace = record(tmp_path, text, seconds=0.8)
    assert trace.lines[0].function == "burn"
    assert trace.share_of(line for line in trace.lines if line.function == "burn") > 0.8
    assert {"for-loop", "python-loop-body"} & set(trace.lines[0].features)
    assert any("burn (train.py:" in frame for stack in trace.stacks for frame in stack.frames)
    assert not any(str(Path(sys.prefix)) in frame for stack in trace.stacks for frame in stack.frames)


def test_a_package_that_reads_the_stack_in_class_bodies_finds_the_class_statement(tmp_path):
    (tmp_path / "overrides.py").write_text(
        "import sys\n\ndef named_bases():\n    return sys._getframe(2).f_code.co_names\n"
    )
    (tmp_path / "envs.py").write_text(
        "import overrides\n\nclass Base: ...\n\nclass Corridor(Base):\n    seen = overrides.named_bases()\n"
        "    def reset(self):\n        return 0\n"
        "    def step(self, action):\n        return 0, 1.0, False, {}\n\n"
        "assert 'Base' in Corridor.seen, Corridor.seen\n"
    )
    trace = record(tmp_path, "import envs\nenv = envs.Corridor()\nenv.reset()\nfor _ in range(10):\n    env.step(0)\n")
    assert (trace.subject.ending, trace.counts.env_steps) == ("finished", 10)
