"""A program that learns without PyTorch: its returns rise to `--height` with the env steps."""

import argparse
import random


class Walk:
    def __init__(self, height):
        self.height, self.steps, self.all = height, 0, 0

    def reset(self):
        self.steps = 0
        return 0.0

    def step(self, action):
        self.steps += 1
        self.all += 1
        reward = self.height * min(1.0, self.all / 2_000) / 10 + random.gauss(0.0, 0.1)
        return 0.0, reward, self.steps == 10, False, {}


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--height", type=float, default=10.0)
parser.add_argument("--fail", action="store_true")
arguments = parser.parse_args()
random.seed(arguments.seed)
env = Walk(arguments.height + random.gauss(0.0, 0.2))
for _ in range(400):
    env.reset()
    done = False
    while not done:
        _, _, done, _, _ = env.step(0)
if arguments.fail:
    raise SystemExit("it was not to be")
