"""Every env step draws a frame that nobody looks at. Remedy: none is drawn."""

import numpy as np
from training import Drift, arguments, train


class Drawn(Drift):
    def render(self):
        frame = np.full((800, 1200, 3), 255, np.uint8)
        for x, y in np.clip(self.state[:, :2] * 100 + 200, 0, 380).astype(int).tolist():
            frame[x : x + 8, y : y + 8] = (200, 30, 30)
        return frame


options = arguments(env_calls=3000)
env = Drawn(count=4)
frames = []


def look(call):
    frames[:] = [env.render()]


train(options.env_calls, env=env, after=None if options.healthy else look)
