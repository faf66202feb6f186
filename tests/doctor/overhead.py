"""What the timing run costs five learning programs: each interleaved alone and under the recorder, in processor time.

    python -m tests.doctor.overhead [--pairs N] [NAME ...]

A program prints its env steps per second of processor time, its own start-up left out; the ratio of a pair is its speed
alone over its speed recorded, so that 1.05 is five per cent more time. Loops take ten to twelve seconds of a quiet
core, as the doctor's own window does: what is done once in a recording weighs as much as there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from hotloop.doctor import recorder

CHILD = Path(recorder.__file__).with_name("child.py")
PLAIN_DQN = Path(__file__).parents[2] / "examples" / "plain_dqn.py"
SPEED = re.compile(r"([\d,]+) env steps per second of processor time")
BEGIN = """
import time
import gymnasium
import numpy as np
import torch
from torch import nn
from torch.nn import functional
torch.manual_seed(0)
torch.set_num_threads(1)

def tell(env_steps, seconds):
    print(f"{env_steps / seconds:,.0f} env steps per second of processor time")
"""
LIBRARY = """
model.learn(WARM)
began = time.process_time()
model.learn(STEPS)
tell(STEPS, time.process_time() - began)
"""
SB3_DQN = """
from stable_baselines3 import DQN
model = DQN("MlpPolicy", "CartPole-v1", learning_starts=100, train_freq=1, device="cpu", seed=0)
WARM, STEPS = 500, 15_000
"""
SB3_PPO = """
from stable_baselines3 import PPO
model = PPO("MlpPolicy", "CartPole-v1", n_steps=512, device="cpu", seed=0)
WARM, STEPS = 512, 30_720
"""
SAC = """
def network(num_in, num_out):
    return nn.Sequential(nn.Linear(num_in, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, num_out))

env = gymnasium.make("Pendulum-v1")
actor, critics, targets = network(3, 2), [network(4, 1), network(4, 1)], [network(4, 1), network(4, 1)]
log_alpha = torch.zeros(1, requires_grad=True)
by_actor = torch.optim.Adam(actor.parameters(), lr=1e-3)
by_critic = torch.optim.Adam([one for critic in critics for one in critic.parameters()], lr=1e-3)
by_alpha = torch.optim.Adam([log_alpha], lr=1e-3)
rows, columns = 0, [np.zeros((10_000, width), np.float32) for width in (3, 1, 1, 3)]

def draw(obs):
    mean, log_std = actor(obs).chunk(2, dim=-1)
    normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
    before = normal.rsample()
    action = torch.tanh(before)
    return action, (normal.log_prob(before) - torch.log(1 - action**2 + 1e-6)).sum(-1, keepdim=True)

def update():
    index = np.random.randint(0, rows, 64)
    obs, action, reward, next_obs = (torch.as_tensor(column[index]) for column in columns)
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        next_action, log_prob = draw(next_obs)
        both = torch.cat([next_obs, next_action], 1)
        target = reward + 0.99 * (torch.min(targets[0](both), targets[1](both)) - alpha * log_prob)
    both = torch.cat([obs, action], 1)
    loss = sum(functional.mse_loss(critic(both), target) for critic in critics)
    by_critic.zero_grad()
    loss.backward()
    by_critic.step()
    action, log_prob = draw(obs)
    both = torch.cat([obs, action], 1)
    loss = (alpha * log_prob - torch.min(critics[0](both), critics[1](both))).mean()
    by_actor.zero_grad()
    loss.backward()
    by_actor.step()
    loss = -(log_alpha * (log_prob.detach() - 1)).mean()
    by_alpha.zero_grad()
    loss.backward()
    by_alpha.step()
    with torch.no_grad():
        for critic, moved in zip(critics, targets):
            for new, old in zip(critic.parameters(), moved.parameters()):
                old.mul_(0.995).add_(new, alpha=0.005)

obs, _ = env.reset(seed=0)
for step in range(6_200):
    if step == 200:
        began = time.process_time()
    with torch.no_grad():
        action = draw(torch.as_tensor(obs)[None])[0][0].numpy()
    next_obs, reward, terminated, truncated, _ = env.step(2 * action)
    for column, value in zip(columns, (obs, action, reward, next_obs)):
        column[rows] = value
    rows += 1
    obs = env.reset()[0] if terminated or truncated else next_obs
    if rows >= 100:
        update()
tell(6_000, time.process_time() - began)
"""
PLAIN_PPO = """
envs = gymnasium.make_vec("CartPole-v1", num_envs=4, vectorization_mode="sync")
body = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
policy, value = nn.Linear(64, 2), nn.Linear(64, 1)
optimizer = torch.optim.Adam([*body.parameters(), *policy.parameters(), *value.parameters()], lr=3e-4)
obs, _ = envs.reset(seed=0)
began, rollouts = 0.0, 480
for rollout in range(rollouts + 1):
    if rollout == 1:
        began = time.process_time()
    seen = []
    for _ in range(64):
        with torch.no_grad():
            hidden = body(torch.as_tensor(obs))
            drawn = torch.distributions.Categorical(logits=policy(hidden))
            action, values = drawn.sample(), value(hidden)[:, 0]
        next_obs, reward, terminated, truncated, _ = envs.step(action.numpy())
        seen.append((torch.as_tensor(obs), action, drawn.log_prob(action), torch.as_tensor(reward), values))
        obs = next_obs
    rows = [torch.stack(column).flatten(0, 1).float() for column in zip(*seen)]
    for _ in range(4):
        for index in torch.randperm(256).split(64):
            some, action, before, reward, old = (column[index] for column in rows)
            hidden = body(some)
            now = torch.distributions.Categorical(logits=policy(hidden))
            ratio = (now.log_prob(action) - before).exp()
            advantage = reward - old
            loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            loss = loss + functional.mse_loss(value(hidden)[:, 0], reward) - 0.01 * now.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
tell(256 * rollouts, time.process_time() - began)
"""
PROGRAMS = {
    "sb3-dqn": BEGIN + SB3_DQN + LIBRARY,
    "sb3-ppo": BEGIN + SB3_PPO + LIBRARY,
    "sac": BEGIN + SAC,
    "plain-ppo": BEGIN + PLAIN_PPO,
}


def speed(script: Path, arguments: list[str], folder: str, recorded: bool) -> float:
    """Env steps per second of processor time, as the program says."""
    command = [sys.executable, str(script), *arguments]
    if recorded:
        order = {"script": str(script), "kind": "timing", "seconds": 600.0, "result": f"{folder}/result"}
        Path(folder, "order.json").write_text(json.dumps({**order, "arguments": arguments, "warm_updates": 5}))
        command = [sys.executable, str(CHILD), f"{folder}/order.json"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder, check=True)
    if recorded:
        faults = json.loads(Path(folder, "result").read_text())["faults"]
        assert not faults, faults
    found = SPEED.search(ran.stdout)
    assert found, ran.stdout + ran.stderr
    return float(found[1].replace(",", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"plain-dqn, {', '.join(PROGRAMS)}")
    wanted = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted.names or ["plain-dqn", *PROGRAMS]:
            script, arguments = PLAIN_DQN, ["--env-steps", "28000"]
            if name in PROGRAMS:
                script, arguments = Path(folder, f"{name}.py"), []
                script.write_text(PROGRAMS[name])
            pairs = []
            for _ in range(wanted.pairs):
                alone, recorded = (speed(script, arguments, folder, recorded) for recorded in (False, True))
                pairs.append((alone / recorded, alone))
            ratios, rate = sorted(ratio for ratio, _ in pairs), max(rate for _, rate in pairs)
            each = f"{ratios[0]:.3f} to {ratios[-1]:.3f}; {1e6 / rate:.0f} us per env step alone"
            print(f"{name}: {median(ratios):.3f} times the processor time ({each})", flush=True)


if __name__ == "__main__":
    main()
