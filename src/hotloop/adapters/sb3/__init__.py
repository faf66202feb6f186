"""Stable-Baselines3 in place: `accelerate(model)` makes a DQN, PPO, SAC, TD3 or DDPG fast that stays what it is.

Files:
    acceleration.py  Which models it is for, what it changes, what it says, how it is undone
    actor_critic.py  The policy of an accelerated `PPO`: networks, draws
    callback.py      `accelerate` where somebody else's code makes the model: as a callback of its `learn`
    dqn.py           `DQN` on the native lane
    in_place.py      Objects that get faster methods without being replaced
    memory.py        Parameters and Adam's moments in flat vectors that torch's objects are views of
    ppo.py           `PPO` on the native lane
    ppo_kernels.py   The minibatches of one epoch of PPO, and advantages, in machine code
    replay.py        Batches as a replay buffer draws them, rows stored without copies
    sac.py           `SAC`, `TD3` and `DDPG` on the native lane
    squashed.py      Their policy: networks, draws
    vector_env.py    `DummyVecEnv` without copies that nobody can tell from the original
"""

from hotloop.core.extras import need

need("sb3", "this", "stable_baselines3")

from hotloop.adapters.sb3.acceleration import AccelerationReport as AccelerationReport  # noqa: E402
from hotloop.adapters.sb3.acceleration import accelerate as accelerate  # noqa: E402
from hotloop.adapters.sb3.acceleration import report as report  # noqa: E402
from hotloop.adapters.sb3.acceleration import restore as restore  # noqa: E402
from hotloop.adapters.sb3.callback import AccelerateCallback as AccelerateCallback  # noqa: E402

__all__ = ["AccelerateCallback", "AccelerationReport", "accelerate", "report", "restore"]
