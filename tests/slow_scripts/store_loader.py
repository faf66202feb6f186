"""Every update makes a DataLoader over the replay for its batches. Remedy: a permutation, cut into pieces."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from training import Learner, Ring, arguments, train

options = arguments(env_calls=400)


class Rollout(Ring):
    """All that was stored since the last update, which goes through it once."""

    def sample(self, size):
        fields = self.obs, self.action, self.reward, self.next_obs
        return tuple(torch.from_numpy(field[:1024]) for field in fields)


class Minibatches(Learner):
    def __init__(self):
        super().__init__()
        self.generator = torch.Generator().manual_seed(0)

    def update(self, batch):
        for part in self.parts(batch):
            super().update(part)

    def parts(self, batch):
        if not options.healthy:
            loader = DataLoader(TensorDataset(*batch), batch_size=256, shuffle=True, generator=self.generator)
            yield from loader
            return
        torch.empty((), dtype=torch.int64).random_(generator=self.generator)  # the loader draws a seed of its own
        for rows in torch.randperm(len(batch[0]), generator=self.generator).split(256):
            yield tuple(field[rows] for field in batch)


train(options.env_calls, ring=Rollout(), learner=Minibatches())
