"""A trace written by hand: a plain DQN script with per-env pushes, host reads and an update that takes most of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotloop.doctor.finding import CHANGES_LEARNING, IDENTICAL, TO_ROUNDING, Finding
from hotloop.doctor.trace import CallCount, Counts, Experiment, Growth, LineCost, Slice, StackCost, Subject, Trace

PHASES = {"start-up": 4.0, "act": 6.0, "env": 4.0, "store-and-sample": 6.0, "update": 20.0, "log": 3.0, "other": 1.0}
SLICES = 40
NASTY = '</script><img src=x onerror="alert(1)">'


def make_trace(**changed: Any) -> Trace:
    """44 s, of which 40 are the loop: 20,000 env steps (2 ms each) of 8 envs, 5,000 updates (8 ms each)."""
    trace = Trace(
        subject=Subject(kind="script", name="train.py", arguments=("--seed", "3"), ending="limit"),
        machine={
            "python": "3.12.3",
            "system": "Linux",
            "processor": "AMD Ryzen 7 5800X",
            "cores": 8,
            "torch": "2.8.0+cpu",
        }
        | {"memory_bytes": 33_500_000_000, "load_average": [0.5, 0.4, 0.3], "torch_threads": 8, "blas": "mkl"}
        | {"denormals_flushed": False, "device": "cpu"},
        seconds=44.0,
        phases=PHASES,
        update_parts={"forward": 6.0, "backward": 9.0, "optimiser": 4.0, "rest": 1.0},
        counts=COUNTS,
        calls=CALLS,
        counted=Counts(env_steps=2_000, env_calls=250, updates=500),
        lines=LINES,
        stacks=STACKS,
        timeline=make_timeline(),
        growth=GROWTH,
        experiments=EXPERIMENTS,
        notes=("sampled every 2 ms; the sampler took 1.8 % of the loop", "native frames below torch are not seen"),
    )
    return replace(trace, **changed)


COUNTS = Counts(
    env_steps=20_000,
    env_calls=2_500,
    episodes=400,
    updates=5_000,
    act_forwards=2_500,
    act_forwards_with_grad=2_500,
    update_forwards=15_000,
    backwards=5_000,
    parameter_tensors=6,
    parameters=17_922,
    optimiser="Adam (foreach)",
    batch_size=64,
)
CALLS = (
    CallCount(name="Tensor.item", where="train.py:88", phase="store-and-sample", count=16_000),
    CallCount(name="list.insert", where="buffer.py:31", phase="store-and-sample", count=2_000, largest=10_000),
    CallCount(name="torch.tensor", where="train.py:64", phase="act", count=250),
    CallCount(name="builtins.print", where="train.py:120", phase="log", count=500),
    CallCount(name="user:Agent.act", where="train.py:60", phase="act", count=250),
)


def _line(where: str, function: str, source: str, phase: str, seconds: float) -> LineCost:
    return LineCost(where=where, function=function, source=source, phase=phase, seconds=seconds)


LINES = (
    _line("train.py:101", "learn", "loss.backward()", "update", 9.0),
    _line("train.py:97", "learn", "loss = F.mse_loss(self.net(obs).gather(1, action), target)", "update", 6.0),
    _line("train.py:88", "remember", "self.memory.push(obs[i], int(action[i].item()), r[i])", "store-and-sample", 4.4),
    _line("train.py:103", "learn", "self.optimizer.step()", "update", 4.0),
    _line("train.py:72", "main", "obs, reward, done, truncated, info = envs.step(action)", "env", 4.0),
    _line("train.py:66", "act", "q = self.net(torch.tensor(obs, dtype=torch.float32))", "act", 3.8),
    _line("train.py:120", "main", 'print(f"step {step} loss {loss.item():.4f}")', "log", 3.0),
    _line("buffer.py:31", "push", "self.rows.insert(0, row)", "store-and-sample", 1.6),
)


def _stack(phase: str, seconds: float, *frames: str) -> StackCost:
    return StackCost(phase=phase, frames=("main (train.py:140)", *frames), seconds=seconds)


STACKS = (
    _stack(
        "update", 9.0, "learn (train.py:101)", "backward (torch/_tensor.py:647)", "backward (torch/autograd.py:354)"
    ),
    _stack("update", 4.4, "learn (train.py:97)", "forward (net.py:20)", "forward (torch/nn/linear.py:125)"),
    _stack("update", 1.6, "learn (train.py:97)", "forward (net.py:20)", "relu (torch/nn/functional.py:1697)"),
    _stack("update", 4.0, "learn (train.py:103)", "step (torch/optim/adam.py:226)", "_multi_tensor_adam (adam.py:590)"),
    _stack("update", 1.0, "learn (train.py:96)"),
    _stack("act", 3.8, "act (train.py:66)", "forward (net.py:20)", "forward (torch/nn/linear.py:125)"),
    _stack("act", 2.2, "act (train.py:64)"),
    _stack("env", 4.0, "step (gymnasium/vector/sync_vector_env.py:210)", "step (cartpole.py:132)"),
    _stack("store-and-sample", 4.4, "remember (train.py:88)"),
    _stack("store-and-sample", 1.6, "remember (train.py:88)", "push (buffer.py:31)"),
    _stack("log", 3.0, "print (train.py:120)"),
    _stack("other", 1.0),
)
GROWTH = (
    Growth(
        over="run",
        what="env step",
        points=tuple((place, 1600.0 + 8 * place / 200) for place in range(0, 20_000, 1000)),
        ratio=1.48,
    ),
    Growth(
        over="replay fill",
        what="store-and-sample",
        points=((0, 150.0), (2_500, 240.0), (5_000, 310.0), (7_500, 405.0), (10_000, 470.0)),
        ratio=3.13,
    ),
    Growth(over="run", what="env steps per episode", points=((0, 21.0), (10_000, 48.0), (20_000, 190.0)), ratio=9.05),
)
EXPERIMENTS = (
    Experiment(
        name="no updates", what="acting and storing only", kind=CHANGES_LEARNING, ratio=2.05, low=1.98, high=2.11
    ),
    Experiment(
        name="update ratio x1/4", what="a quarter of the updates", kind=CHANGES_LEARNING, ratio=1.62, low=1.5, high=1.7
    ),
    Experiment(name="1 thread", what="torch.set_num_threads(1)", kind=TO_ROUNDING, ratio=1.31, low=1.24, high=1.38),
    Experiment(name="logging off", what="no print", kind=IDENTICAL, ratio=1.08, low=1.03, high=1.12),
    Experiment(name="16 threads", what="torch.set_num_threads(16)", kind=TO_ROUNDING, ratio=0.83, low=0.71, high=1.02),
)
FINDINGS = (
    Finding(
        rule="RATIO001",
        title="More updates than the collected experience can feed",
        share=0.5,
        evidence="0.25 updates per env step; without any the loop is 2.05x faster [1.98, 2.11].",
        where="train.py:101",
        remedy="Update once per vector step with a larger batch.",
        before="for _ in range(num_envs // 4):\n    agent.learn()",
        after="agent.learn(batch_size=256)",
        expected_gain=1.62,
        kind=CHANGES_LEARNING,
    ),
    Finding(
        rule="PUSH001",
        title="Transitions are pushed one env at a time, with a host read for each",
        share=0.15,
        evidence="8.0 `Tensor.item` calls per env step at train.py:88 into a list of 10,000 rows.",
        where="train.py:88",
        remedy="Store the whole step at once: `hotloop.replay.Replay.add` takes arrays of all envs.",
        before="for i in range(num_envs):\n    memory.push(obs[i], action[i].item(), r[i])",
        after="replay.add(obs, action, step)",
        expected_gain=1.18,
        kind=IDENTICAL,
        lines=("buffer.py:31",),
    ),
    Finding(
        rule="LOG001",
        title="A line is printed after every update",
        share=0.075,
        evidence="1.0 `print` per update, 600 us each.",
        where="train.py:120",
        remedy="Print every hundredth update.",
        expected_gain=1.08,
        kind=IDENTICAL,
    ),
)


def make_timeline() -> tuple[Slice, ...]:
    """40 slices of 500 env steps and 125 updates, each a little longer than the one before; 40 s together."""
    weights = [1 + 0.4 * number / SLICES + 0.02 * (-1) ** number for number in range(SLICES)]
    slices, start = [], 0.0
    for weight in weights:
        phases = {name: seconds * weight / sum(weights) for name, seconds in PHASES.items() if name != "start-up"}
        seconds = sum(phases.values())
        counts = {"env_steps": 20_000 // SLICES, "episodes": 400 // SLICES, "updates": 5_000 // SLICES}
        slices.append(Slice(start_seconds=start, seconds=seconds, phases=phases, **counts))
        start += seconds
    return tuple(slices)


def slowed(factor: float, phase: str = "update", swing: float = 0.1, **changed: Any) -> Trace:
    """The sample with one phase `factor` times as slow: a little more in two slices, a little less in the next two."""
    trace = make_trace(**changed)
    phases = trace.phases | {phase: factor * trace.phases[phase]}
    slices = []
    for number, part in enumerate(trace.timeline):
        here = factor + (swing if number % 4 < 2 else -swing)
        inside = part.phases | {phase: here * part.phases[phase]}
        slices.append(replace(part, phases=inside, seconds=sum(inside.values())))
    lines = tuple(replace(line, seconds=line.seconds * (factor if line.phase == phase else 1)) for line in LINES)
    return replace(trace, phases=phases, seconds=sum(phases.values()), timeline=tuple(slices), lines=lines)
