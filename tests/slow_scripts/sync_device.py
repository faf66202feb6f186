"""Every row of every env step is copied to a device by itself. Remedy: one copy for all.

Without a device, PyTorch's `meta` stands in for it: a copy to it costs its call, and what lies there is not read.
"""

import torch
from training import Drift, Ring, arguments, train

options = arguments(env_calls=2500)
device = "cuda" if torch.cuda.is_available() else "meta"


class OnDevice(Ring):
    """Keeps the latest rows on the device too."""

    def add(self, obs, action, reward, next_obs):
        if options.healthy:
            self.latest = torch.from_numpy(obs).to(device).unbind(), torch.from_numpy(next_obs).to(device).unbind()
        else:
            self.latest = [
                (torch.from_numpy(a).to(device), torch.from_numpy(b).to(device))
                for a, b in zip(obs, next_obs, strict=True)
            ]
        super().add(obs, action, reward, next_obs)


train(options.env_calls, env=Drift(count=16), ring=OnDevice(), updates_every=16)
