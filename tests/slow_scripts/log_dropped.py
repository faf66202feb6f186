"""Texts are put together for a logger that drops them. Remedy: the logger puts them together, where it needs them."""

import logging

import torch
from training import Learner, arguments, train

options = arguments(env_calls=1500)
logging.basicConfig(level=logging.WARNING)
logger = logging.getLogger("agent")


class Talkative(Learner):
    def act(self, obs):
        with torch.inference_mode():
            q = self.net(torch.from_numpy(obs))
        if options.healthy:
            logger.debug("values of the first env: %s", q[0])
        else:
            logger.debug(f"values of the first env: {q[0]}")
        return q.argmax(dim=1).numpy()


train(options.env_calls, learner=Talkative())
