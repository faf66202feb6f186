"""Hotloop: train deep-RL agents at the speed of the machine, see where the time goes, prove the fast version right.

settings = hotloop.preset("cartpole-dqn", seed=1)
result = hotloop.train(settings)
agent = hotloop.load(result["run"])
action = agent.act(observation)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotloop.algos.dqn_settings import DQNSettings as DQNSettings
    from hotloop.algos.ppo_settings import PPOSettings as PPOSettings
    from hotloop.api import HotloopError as HotloopError
    from hotloop.api import evaluate as evaluate
    from hotloop.api import load as load
    from hotloop.api import preset as preset
    from hotloop.api import report_page as report_page
    from hotloop.api import resume as resume
    from hotloop.api import train as train
    from hotloop.parts import PolicyLearner as PolicyLearner
    from hotloop.parts import QLearner as QLearner
    from hotloop.parts import Replay as Replay
    from hotloop.parts import Rollout as Rollout
    from hotloop.parts import final_obs as final_obs
    from hotloop.parts import gae as gae
    from hotloop.parts import vector as vector

__all__ = ["DQNSettings", "HotloopError", "PPOSettings", "evaluate", "load", "preset", "report_page", "resume", "train"]
PARTS = ["PolicyLearner", "QLearner", "Replay", "Rollout", "final_obs", "gae", "vector"]
__all__ += PARTS


def __getattr__(name: str) -> Any:
    """Import PyTorch only when something is asked for, so that `hotloop --help` answers at once."""
    if name not in __all__:
        raise AttributeError(f"module 'hotloop' has no attribute {name!r}")
    module = importlib.import_module("hotloop.parts" if name in PARTS else "hotloop.api")
    return getattr(module, name)
