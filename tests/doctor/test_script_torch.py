"""A small DQN in plain PyTorch, as people write it, and what the recorder sees of it."""

import textwrap

import pytest

from hotloop.diagnosis.diagnose import diagnose
from hotloop.doctor.script import ScriptPlan, record_script

DQN = """
import random
from collections import deque
import torch
from torch import nn

class Env:
    def reset(self):
        self.t = 0
        return [0.0, 0.0]

    def step(self, action):
        self.t += 1
        return [self.t / 10, 1.0], 1.0, self.t == 10, False, {}

class Buffer:
    def __init__(self):
        self.rows = deque(maxlen=1000)
    def push(self, *row):
        self.rows.append(row)
    def sample(self, size):
        return random.sample(self.rows, size)

env, buffer = Env(), Buffer()
net, target = nn.Linear(2, 2), nn.Linear(2, 2)
optimizer = torch.optim.Adam(net.parameters())
obs = env.reset()
for step in range(200):
    with torch.no_grad():
        action = net(torch.tensor([obs])).argmax().item()
    next_obs, reward, done, _, _ = env.step(action)
    buffer.push(obs, action, reward, next_obs)
    obs = env.reset() if done else next_obs
    if step >= 100:
        batch = buffer.sample(32)
        wanted = torch.tensor([row[2] for row in batch]) + target(torch.tensor([row[3] for row in batch])).amax(1)
        chosen = net(torch.tensor([row[0] for row in batch]))[:, 0]
        loss = ((chosen - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.99
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    script = tmp_path_factory.mktemp("script") / "dqn.py"
    script.write_text(textwrap.dedent(DQN))
    return record_script(script, (), ScriptPlan(threads=False, counting_env_steps=50), lambda _: None)


def test_everything_that_happened_is_counted(trace):
    counts = trace.counts
    assert (counts.env_steps, counts.episodes, counts.updates, counts.backwards) == (200, 20, 100, 100)
    assert (counts.act_forwards, counts.act_forwards_with_grad, counts.update_forwards) == (200 - 1, 0, 200)
    assert counts.unneeded_grad_forwards == 100  # the target network's
    assert (counts.parameter_tensors, counts.parameters, counts.double_parameters) == (2, 6, 0)
    assert (counts.optimiser, counts.batch_size, counts.update_bursts) == ("Adam", 32, 99)


def test_the_learning_rate_is_the_one_that_the_program_was_given(trace):
    """It falls with every update."""
    assert trace.setup.lr == 1e-3


def test_phases_sum_to_the_wall_time_and_the_update_to_its_parts(trace):
    assert sum(trace.phases.values()) == pytest.approx(trace.seconds)
    inside = {"start-up", "act", "env", "store-and-sample", "update", "other", "recording"}
    assert set(trace.phases) - {"queued"} == inside  # the queue for a core, where the machine is busy
    assert sum(trace.update_parts.values()) == pytest.approx(trace.phases["update"])
    assert set(trace.update_parts) == {"forward", "backward", "optimiser", "rest"}
    assert trace.share("update") > trace.share("env")


def test_calls_are_counted_past_the_warm_up(trace):
    assert trace.counted.env_steps == pytest.approx(50, abs=1)
    assert trace.counted.updates == pytest.approx(50, abs=2)
    (item,) = trace.calls_named("Tensor.item")
    assert (item.phase, item.count) == ("act", trace.counted.env_steps)
    assert 2.5 <= trace.per_env_step(trace.calls_named("torch.tensor")) <= 4.5
    (sample,) = trace.calls_named("user:Buffer.sample")
    assert sample.phase == "store-and-sample"
    (append,) = trace.calls_named("deque.append")
    assert append.largest > 100


def test_the_products_of_an_update_are_counted_by_hand(trace):
    """2-2 with 32 rows: both networks forward, and the gradients of both networks' weights, since the target records
    its own too; nobody wants those of their inputs."""
    assert trace.counted.update_operations == 4 * (2 * 32 * 2 * 2)
    assert trace.counted.matrix_speed > 1e8


ELSEWHERE = """
import sys
from concurrent.futures import ThreadPoolExecutor
import torch

class Env:
    def reset(self):
        return 0.0

    def step(self, action):
        return 0.0, 1.0, False, False, {}

env, weight = Env(), torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
with ThreadPoolExecutor(1) as pool:
    for step in range(300):
        if sys.argv[1] == "threads":
            pool.submit(env.step, 0).result()
        optimizer.zero_grad()
        (weight**2).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("envs", "verdict", "note"),
    [
        ("threads", "Learning runs in another thread than the envs", "steps were made by another thread than the one"),
        ("nowhere", "No env step was seen in", "300 optimizer steps were made and no env step"),
    ],
)
def test_learning_that_cannot_be_timed_is_told(tmp_path, envs, verdict, note):
    (tmp_path / "apart.py").write_text(ELSEWHERE)
    found = diagnose(tmp_path / "apart.py", [envs], quick=True)
    assert verdict in found.as_json()["verdict"]
    assert any(note in one for one in found.trace.notes)
    assert not any("--env" in one or "no optimizer step" in one for one in found.trace.notes)
