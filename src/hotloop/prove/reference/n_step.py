"""n-step transitions: a deque of the last n steps of each environment in front of the replay buffer."""

from collections import deque


class NStepBuffer:
    """For one environment; `add` returns the transitions that are complete now."""

    def __init__(self, n, gamma):
        self.n, self.gamma = n, gamma
        self.steps: deque = deque()

    def add(self, obs, action, reward, next_obs, terminated, truncated):
        self.steps.append((obs, action, reward))
        finished = []
        if terminated or truncated:
            while self.steps:
                finished.append(self.oldest(next_obs, terminated))
        elif len(self.steps) == self.n:
            finished.append(self.oldest(next_obs, terminated))
        return finished

    def oldest(self, next_obs, terminated):
        """(obs, action, return, discount, next_obs); a shorter horizon where the episode ended early."""
        total = 0.0
        for power, (_, _, reward) in enumerate(self.steps):
            total += self.gamma**power * reward
        discount = 0.0 if terminated else self.gamma ** len(self.steps)
        obs, action, _ = self.steps.popleft()
        return obs, action, total, discount, next_obs
