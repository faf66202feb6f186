"""An Ape-X-like toy: actor processes put every transition into a multiprocessing.Queue, the learner takes them out."""

import multiprocessing as mp
import queue
import random
import sys
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))

    def forward(self, x):
        return self.layers(x)


def actor(actor_id, transitions, weights, stop):
    torch.set_num_threads(1)
    env = gym.make("CartPole-v1")
    net = QNetwork()
    rng = random.Random(actor_id)
    obs, _ = env.reset(seed=actor_id)
    epsilon = 0.4 ** (1 + actor_id)
    while not stop.is_set():
        try:  # noqa: SIM105
            net.load_state_dict({key: torch.from_numpy(value) for key, value in weights.get_nowait().items()})
        except queue.Empty:
            pass
        if rng.random() < epsilon:
            action = rng.randrange(2)
        else:
            with torch.no_grad():
                action = int(net(torch.from_numpy(obs)).argmax())
        next_obs, reward, terminated, truncated, _ = env.step(action)
        transitions.put((actor_id, obs, action, reward, next_obs, terminated))
        obs = next_obs
        if terminated or truncated:
            obs, _ = env.reset()
    transitions.cancel_join_thread()


def main():
    total = int(sys.argv[1])
    context = mp.get_context("fork")
    transitions = context.Queue(maxsize=1000)
    stop = context.Event()
    mailboxes = [context.Queue(maxsize=1) for _ in range(2)]
    actors = [context.Process(target=actor, args=(i, transitions, mailboxes[i], stop), daemon=True) for i in range(2)]
    for process in actors:
        process.start()
    torch.set_num_threads(1)
    net, target = QNetwork(), QNetwork()
    target.load_state_dict(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-4)
    memory = deque(maxlen=50000)
    received = updates = 0
    while received < total:
        for _ in range(4):
            _, obs, action, reward, next_obs, terminated = transitions.get()
            memory.append((obs, action, reward, next_obs, terminated))
            received += 1
        if len(memory) < 1000:
            continue
        batch = random.sample(memory, 64)
        obs, actions, rewards, next_obs, dones = map(np.array, zip(*batch))
        obs, next_obs = torch.from_numpy(obs), torch.from_numpy(next_obs)
        actions, rewards = torch.from_numpy(actions), torch.from_numpy(rewards).float()
        dones = torch.from_numpy(dones).float()
        with torch.no_grad():
            goal = rewards + 0.99 * (1 - dones) * target(next_obs).max(1).values
        value = net(obs).gather(1, actions.unsqueeze(1)).squeeze(1)
        loss = nn.functional.mse_loss(value, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
        if updates % 50 == 0:
            for mailbox in mailboxes:
                if mailbox.empty():
                    mailbox.put({key: value.numpy() for key, value in net.state_dict().items()})
        if updates % 200 == 0:
            target.load_state_dict(net.state_dict())
            print(f"{received} transitions, {updates} updates, loss {loss.item():.4f}", flush=True)
    stop.set()
    for mailbox in mailboxes:
        mailbox.cancel_join_thread()
    for process in actors:
        process.terminate()
        process.join()
    print("done")


if __name__ == "__main__":
    main()
