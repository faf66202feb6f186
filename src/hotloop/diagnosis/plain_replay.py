"""The replay buffer that people write first, a deque of tuples: what the experiment about storing stores into."""

from __future__ import annotations

from collections import deque
from typing import Any


class PlainReplay:
    """The oldest transition goes when it is full."""

    def __init__(self, capacity: int) -> None:
        self.buffer: deque[tuple[Any, ...]] = deque(maxlen=capacity)

    def push(self, state: Any, action: Any, reward: Any, next_state: Any, done: Any) -> None:
        self.buffer.append((state, action, reward, next_state, done))

    def __len__(self) -> int:
        return len(self.buffer)


def push_one_by_one(replay: PlainReplay, states: Any, actions: Any, rewards: Any, next_states: Any, dones: Any) -> None:
    """Tensors of all envs, each row of which leaves the device by itself."""
    for i in range(len(actions)):
        replay.push(
            states[i].cpu().numpy(),
            actions[i].item(),
            rewards[i].item(),
            next_states[i].cpu().numpy(),
            dones[i].item(),
        )


def push_batch(replay: PlainReplay, states: Any, actions: Any, rewards: Any, next_states: Any, dones: Any) -> None:
    """The first remedy: every tensor leaves the device once."""
    states, next_states = states.cpu().numpy(), next_states.cpu().numpy()
    actions, rewards, dones = actions.tolist(), rewards.tolist(), dones.tolist()
    for i in range(len(actions)):
        replay.push(states[i], actions[i], rewards[i], next_states[i], dones[i])
