"""Sixteen envs of a fraction of a millisecond live in a worker each. Remedy: as many workers as cores."""

import multiprocessing

import numpy as np
from training import Drift, arguments, train

ENVS = 16
options = arguments(env_calls=600)
workers = 2 if options.healthy else ENVS


class Weather(Drift):
    """Some thousand small steps of a pendulum for each env step, in Python."""

    angle = speed = 0.0

    def step(self, action):
        for _ in range(2500):
            self.speed += 1e-4 * (0.5 - self.angle)
            self.angle += 1e-3 * self.speed
        return super().step(action)


def work(pipe, seeds):
    envs = [Weather(count=1, seed=seed) for seed in seeds]
    while True:
        actions = pipe.recv()
        if actions is None:
            return
        if isinstance(actions, str):
            pipe.send([env.reset()[:1] for env in envs])
        else:
            pipe.send([env.step(action)[:4] for env, action in zip(envs, actions, strict=True)])


class Workers:
    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.pipes, ends = zip(*[context.Pipe() for _ in range(workers)], strict=True)
        for seeds, end in zip(np.split(np.arange(ENVS), workers), ends, strict=True):
            context.Process(target=work, args=(end, seeds), daemon=True).start()

    def ask(self, questions):
        for pipe, question in zip(self.pipes, questions, strict=True):
            pipe.send(question)
        answers = [answer for pipe in self.pipes for answer in pipe.recv()]
        return [np.concatenate(part) for part in zip(*answers, strict=True)]

    def reset(self):
        return self.ask(["reset"] * workers)[0], {}

    def step(self, action):
        return *self.ask(np.split(action.reshape(ENVS, 1), workers)), {}

    def close(self):
        for pipe in self.pipes:
            pipe.send(None)


env = Workers()
train(options.env_calls, env=env, updates_every=8)
env.close()
