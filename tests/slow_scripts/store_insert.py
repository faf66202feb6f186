"""Advantages are summed on single-number tensors and inserted at the front of a list. Remedy: filled from the back."""

import numpy as np
import torch
from training import OUTCOME, Drift, Learner, Stopwatch, arguments, parameters_of

ROLLOUT = 256


def inserted(rewards, values):
    advantages, running = [], torch.zeros(())
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + 0.99 * values[t + 1] - values[t]
        running = delta + 0.99 * 0.95 * running
        advantages.insert(0, running)
    return torch.stack(advantages)


def from_the_back(rewards, values):
    delta = (rewards + 0.99 * values[1:] - values[:-1]).tolist()
    advantages, running = [0.0] * len(delta), 0.0
    for t in range(len(delta) - 1, -1, -1):
        advantages[t] = running = delta[t] + 0.99 * 0.95 * running
    return torch.tensor(advantages)


options = arguments(env_calls=80 * ROLLOUT)
env, learner = Drift(count=1), Learner()
learner.warm_up()
obs, _ = env.reset()
watch = Stopwatch()
for _ in range(options.env_calls // ROLLOUT):
    seen, rewards = [], []
    for _ in range(ROLLOUT):
        seen.append(obs)
        obs, reward, *_ = env.step(0)
        rewards.append(reward)
    with torch.no_grad():
        values = learner.net(torch.from_numpy(np.concatenate([*seen, obs])))[:, 0]
    compute = from_the_back if options.healthy else inserted
    advantages = compute(torch.from_numpy(np.concatenate(rewards)), values)
    loss = ((learner.net(torch.from_numpy(np.concatenate(seen)))[:, 0] - advantages) ** 2).mean()
    learner.optimiser.zero_grad()
    loss.backward()
    learner.optimiser.step()
watch.say(options.env_calls)
OUTCOME.update(advantages=advantages.numpy(), parameters=parameters_of(learner.net))
