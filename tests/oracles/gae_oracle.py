"""GAE the plain way: one env at a time, a list that grows at its front."""

from __future__ import annotations


def gae_one_env(rewards, values, last_value, final_values, terminated, truncated, gamma, lam):
    """Advantages of one env's T steps; `values` before each step, `final_values` of what each action led to."""
    advantages: list[float] = []
    following = 0.0
    for t in reversed(range(len(rewards))):
        if terminated[t]:
            next_value, following = 0.0, 0.0
        elif truncated[t]:
            next_value, following = final_values[t], 0.0
        else:
            next_value = values[t + 1] if t + 1 < len(values) else last_value
        delta = rewards[t] + gamma * next_value - values[t]
        following = delta + gamma * lam * following
        advantages.insert(0, following)
    return advantages
