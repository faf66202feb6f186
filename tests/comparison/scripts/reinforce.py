"""An update in the midst of every training episode, and an evaluation of three whole episodes between two of them."""

import sys

import torch


class Counter:
    def __init__(self, reward):
        self.reward, self.steps = reward, 0

    def reset(self):
        self.steps = 0
        return 0.0

    def step(self, action):
        self.steps += 1
        return 0.0, self.reward, self.steps == 5, False, {}


training, evaluation = Counter(1.0), Counter(100.0)
weight = torch.nn.Parameter(torch.zeros(1))
optimizers = [torch.optim.SGD([weight], lr=0.1), torch.optim.SGD([weight], lr=0.1)]
for _ in range(20 + int(sys.argv[1])):
    training.reset()
    for step in range(5):
        training.step(0)
        if step == 2:
            for optimizer in optimizers:
                optimizer.zero_grad()
                weight.sum().backward()
                optimizer.step()
    for _ in range(3):
        evaluation.reset()
        for _ in range(5):
            evaluation.step(0)
