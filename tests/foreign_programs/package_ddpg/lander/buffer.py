import numpy as np


class ReplayBuffer:
    def __init__(self, capacity, obs_dim, act_dim):
        self.capacity, self.size, self.ptr = capacity, 0, 0
        self.obs = np.zeros((capacity, obs_dim), np.float32)
        self.act = np.zeros((capacity, act_dim), np.float32)
        self.rew = np.zeros(capacity, np.float32)
        self.obs2 = np.zeros((capacity, obs_dim), np.float32)
        self.done = np.zeros(capacity, np.float32)

    def store(self, obs, act, rew, obs2, done):
        self.obs[self.ptr], self.act[self.ptr], self.rew[self.ptr] = obs, act, rew
        self.obs2[self.ptr], self.done[self.ptr] = obs2, done
        self.ptr = (self.ptr + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, batch_size):
        index = np.random.choice(self.size, batch_size, replace=False)
        return {
            "obs": self.obs[index],
            "act": self.act[index],
            "rew": self.rew[index],
            "obs2": self.obs2[index],
            "done": self.done[index],
        }
