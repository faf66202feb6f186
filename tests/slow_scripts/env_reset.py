"""The robot's description is read and parsed at every reset. Remedy: once, and the state put back."""

import xml.etree.ElementTree as tree

import numpy as np
from training import Drift, arguments, train

options = arguments(env_calls=3000)
LINKS = "".join(f'<link name="link_{i}"><mass value="{1 + i / 10}"/><origin xyz="0 0 {i}"/></link>' for i in range(300))
ROBOT = f"<robot>{LINKS}</robot>"


def load(text):
    root = tree.fromstring(text)
    masses = [float(mass.get("value")) for mass in root.iter("mass")]
    heights = [float(origin.get("xyz").split()[2]) for origin in root.iter("origin")]
    return np.array(masses, np.float32), np.array(heights, np.float32)


class Arm(Drift):
    """One arm; an episode lasts ten env steps."""

    def __init__(self):
        super().__init__(1)
        self.description = load(ROBOT)

    def reset(self):
        masses, heights = self.description if options.healthy else load(ROBOT)
        self.inertia, self.left = np.float32((masses * heights**2).sum()), 10
        return super().reset()

    def step(self, action):
        state, reward, terminated, truncated, info = super().step(action)
        self.left -= 1
        if self.left == 0:
            truncated[:] = True
            state, _ = self.reset()
        return state, reward - 1e-6 * self.inertia, terminated, truncated, info


train(options.env_calls, env=Arm())
