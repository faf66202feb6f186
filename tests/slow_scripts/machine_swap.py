"""A replay on disk that the system drops from memory. Remedy: in memory."""

import mmap
import os
import tempfile

import numpy as np
import torch
from training import Ring, arguments, train

options = arguments(env_calls=600)
ROWS, WIDTH = 20_000, 1024


class OnDisk(Ring):
    """Beside each transition lies a page of 4 kB, in a file. What was read is dropped, as if memory were short."""

    def __init__(self):
        super().__init__(ROWS)
        self.file = tempfile.TemporaryFile(dir=".")  # noqa: SIM115  (held while the ring is)
        self.file.write(np.random.default_rng(2).random((ROWS, WIDTH), dtype=np.float32).tobytes())
        self.file.flush()
        os.fsync(self.file.fileno())
        self.pages = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        self.pages.madvise(mmap.MADV_RANDOM)
        self.rows = np.frombuffer(self.pages, np.float32).reshape(ROWS, WIDTH)
        os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if options.healthy:
            self.rows = self.rows.copy()

    def sample(self, size):
        obs, action, reward, next_obs = super().sample(size)
        drawn = self.rng.integers(ROWS, size=size)
        bonus = torch.from_numpy(self.rows[drawn, :2].mean(axis=1))
        if not options.healthy:
            self.pages.madvise(mmap.MADV_DONTNEED)
            for row in drawn.tolist():
                os.posix_fadvise(self.file.fileno(), row * 4 * WIDTH, 4 * WIDTH, os.POSIX_FADV_DONTNEED)
        return obs, action, reward + 0.01 * bonus, next_obs


train(options.env_calls, ring=OnDisk(), updates_every=4)
