"""Four cheap envs live in worker processes. Remedy: step them here."""

import multiprocessing

import numpy as np
from training import Drift, arguments, train

WORKERS = 4


def work(pipe, seed):
    env = Drift(count=1, seed=seed)
    while True:
        action = pipe.recv()
        if action is None:
            return
        pipe.send(env.reset() if isinstance(action, str) else env.step(action))


class Workers:
    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.pipes, ends = zip(*[context.Pipe() for _ in range(WORKERS)], strict=True)
        for seed, end in enumerate(ends):
            context.Process(target=work, args=(end, seed), daemon=True).start()

    def ask(self, questions):
        for pipe, question in zip(self.pipes, questions, strict=True):
            pipe.send(question)
        answers = [pipe.recv() for pipe in self.pipes]
        return [np.concatenate(part) for part in list(zip(*answers, strict=True))[: len(answers[0]) - 1]]

    def reset(self):
        return self.ask(["reset"] * WORKERS)[0], {}

    def step(self, action):
        return *self.ask(np.split(action, WORKERS)), {}

    def close(self):
        for pipe in self.pipes:
            pipe.send(None)


class Here:
    """The same four envs, stepped in this process."""

    def __init__(self):
        self.envs = [Drift(count=1, seed=seed) for seed in range(WORKERS)]

    def reset(self):
        return np.concatenate([env.reset()[0] for env in self.envs]), {}

    def step(self, action):
        answers = [env.step(one) for env, one in zip(self.envs, np.split(action, WORKERS), strict=True)]
        return *(np.concatenate(part) for part in list(zip(*answers, strict=True))[:4]), {}

    def close(self):
        pass


options = arguments(env_calls=4000)
env = Here() if options.healthy else Workers()
train(options.env_calls, env=env, updates_every=64)
env.close()
