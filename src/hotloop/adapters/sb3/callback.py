"""`accelerate` where somebody else's code makes the model: as a callback of its `learn`."""

from __future__ import annotations

from stable_baselines3.common.callbacks import BaseCallback

from hotloop.adapters.sb3.acceleration import accelerate


class AccelerateCallback(BaseCallback):
    """Accelerates the model before it learns: in rl_zoo3 the hyperparameter
    `callback:'hotloop.adapters.sb3.AccelerateCallback'`.

    >>> from stable_baselines3 import DQN
    >>> from hotloop.adapters.sb3 import AccelerateCallback, report
    >>> model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50, device="cpu").learn(100, AccelerateCallback())
    >>> report(model).fast
    ('train', 'act', 'replay', 'vector env')
    """

    def _on_training_start(self) -> None:
        accelerate(self.model, verbose=self.verbose > 0)

    def _on_step(self) -> bool:
        return True
