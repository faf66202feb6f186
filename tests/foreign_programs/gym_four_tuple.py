"""A Q-network written for gym 0.21 and never touched since: `step` returns four values, `reset` one."""

import collections
import random
import sys

import gym
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


class Maze(gym.Env):
    """Find the exit of a maze; the observation is the maze around the agent and the way to the exit."""

    def __init__(self, size=15):
        self.size = size
        self.action_space = gym.spaces.Discrete(4)
        self.observation_space = gym.spaces.Box(-1.0, 1.0, shape=(29,), dtype=np.float32)

    def reset(self):
        self.walls = (np.random.rand(self.size, self.size) < 0.25).astype(int)
        self.walls[0, :] = self.walls[-1, :] = self.walls[:, 0] = self.walls[:, -1] = 1
        self.agent = [1, 1]
        self.exit = [self.size - 2, self.size - 2]
        self.walls[1, 1] = self.walls[self.exit[0], self.exit[1]] = 0
        self.visited = [tuple(self.agent)]
        self.t = 0
        return self._observation()

    def _observation(self):
        view = []
        for dy in range(-2, 3):
            for dx in range(-2, 3):
                y, x = self.agent[0] + dy, self.agent[1] + dx
                if 0 <= y < self.size and 0 <= x < self.size:
                    view.append(float(self.walls[y, x]))
                else:
                    view.append(1.0)
        way = [(self.exit[0] - self.agent[0]) / self.size, (self.exit[1] - self.agent[1]) / self.size]
        return np.array(view + way + [self.t / 200, self.visited.count(tuple(self.agent)) / 10], dtype=np.float32)

    def step(self, action):
        dy, dx = [(-1, 0), (0, 1), (1, 0), (0, -1)][action]
        y, x = self.agent[0] + dy, self.agent[1] + dx
        reward = -0.01
        if self.walls[y, x] == 0:
            self.agent = [y, x]
        else:
            reward -= 0.05
        if tuple(self.agent) in self.visited:
            reward -= 0.02
        self.visited.append(tuple(self.agent))
        self.t += 1
        done = self.agent == self.exit or self.t >= 200
        if self.agent == self.exit:
            reward = 1.0
        return self._observation(), reward, done, {"t": self.t}


class ReplayBuffer:
    def __init__(self):
        self.buffer = collections.deque(maxlen=50000)

    def put(self, transition):
        self.buffer.append(transition)

    def sample(self, n):
        mini_batch = random.sample(self.buffer, n)
        s_lst, a_lst, r_lst, s_prime_lst, done_mask_lst = [], [], [], [], []
        for transition in mini_batch:
            s, a, r, s_prime, done_mask = transition
            s_lst.append(s)
            a_lst.append([a])
            r_lst.append([r])
            s_prime_lst.append(s_prime)
            done_mask_lst.append([done_mask])
        return (
            torch.tensor(s_lst, dtype=torch.float),
            torch.tensor(a_lst),
            torch.tensor(r_lst),
            torch.tensor(s_prime_lst, dtype=torch.float),
            torch.tensor(done_mask_lst),
        )


class Qnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(29, 128)
        self.fc2 = nn.Linear(128, 128)
        self.fc3 = nn.Linear(128, 4)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)

    def sample_action(self, obs, epsilon):
        out = self.forward(obs)
        if random.random() < epsilon:
            return random.randint(0, 3)
        return out.argmax().item()


def train(q, q_target, memory, optimizer):
    for i in range(10):
        s, a, r, s_prime, done_mask = memory.sample(32)
        q_a = q(s).gather(1, a)
        max_q_prime = q_target(s_prime).max(1)[0].unsqueeze(1)
        target = r + 0.98 * max_q_prime * done_mask
        loss = nn.functional.smooth_l1_loss(q_a, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


env = Maze()
q, q_target = Qnet(), Qnet()
q_target.load_state_dict(q.state_dict())
memory = ReplayBuffer()
optimizer = optim.Adam(q.parameters(), lr=0.0005)
score, steps, n_epi = 0.0, 0, 0
while steps < int(sys.argv[1]):
    epsilon = max(0.05, 0.3 - 0.01 * (n_epi / 50))
    s = env.reset()
    done = False
    while not done:
        a = q.sample_action(torch.from_numpy(s).float(), epsilon)
        s_prime, r, done, info = env.step(a)
        memory.put((s, a, r, s_prime, 0.0 if done else 1.0))
        s = s_prime
        score += r
        steps += 1
        if len(memory.buffer) > 500 and steps % 20 == 0:
            train(q, q_target, memory, optimizer)
    n_epi += 1
    if n_epi % 20 == 0:
        q_target.load_state_dict(q.state_dict())
        print(f"n_episode :{n_epi}, score : {score / 20:.1f}, n_buffer : {len(memory.buffer)}, eps : {epsilon:.1%}")
        score = 0.0
env.close()
