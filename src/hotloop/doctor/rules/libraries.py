"""Where a library runs the loop: which of its settings decides what a rule found, and on which line it is given."""

from __future__ import annotations

from hotloop.doctor.finding import KNOBS, Knob, Remedy
from hotloop.doctor.trace import Trace

SB3 = "stable_baselines3"
OFF_POLICY = ("DQN", "SAC", "TD3", "DDPG")
OPTIMISER, ALGORITHM, VECTOR_ENV, EVALUATION = "optimiser", "algorithm", "vector env", "evaluation"
"""Keys of `Trace.made`."""
DISCRETE, CONTINUOUS = "CartPole-v1", "Pendulum-v1"


def _model(trace: Trace, arguments: str, default: str = "PPO") -> str:
    """The constructor as the program has it, with one setting more."""
    name = trace.setup.algorithm or default
    env = trace.setup.env_id or (CONTINUOUS if name in ("SAC", "TD3", "DDPG") else DISCRETE)
    return f'from stable_baselines3 import {name}\n\nmodel = {name}("MlpPolicy", "{env}", {arguments})'


FUSED = Remedy(
    "Hand the setting through to PyTorch's optimiser: one call for all parameters.",
    'model = PPO("MlpPolicy", "CartPole-v1")',
    'from stable_baselines3 import PPO\n\nmodel = PPO("MlpPolicy", "CartPole-v1", '
    "policy_kwargs=dict(optimizer_kwargs=dict(fused=True)))",
    fill=lambda trace: _model(trace, "policy_kwargs=dict(optimizer_kwargs=dict(fused=True))"),
)
GRADIENT_STEPS = Remedy(
    "`gradient_steps` updates are made after every `train_freq` env steps: make fewer, and look at the learning curve.",
    'model = SAC("MlpPolicy", "Pendulum-v1", train_freq=1, gradient_steps=4)',
    'from stable_baselines3 import SAC\n\nmodel = SAC("MlpPolicy", "Pendulum-v1", train_freq=1, gradient_steps=1)',
    fill=lambda trace: _model(trace, "train_freq=1, gradient_steps=1", "SAC"),
)
ACCELERATE = Remedy(
    "Let machine code make the updates of the same model, in place: `accelerate` keeps its API, callbacks and files.",
    'model = DQN("MlpPolicy", "CartPole-v1")',
    'from stable_baselines3 import DQN\n\nfrom hotloop.adapters.sb3 import accelerate\n\nmodel = DQN("MlpPolicy", '
    '"CartPole-v1")\naccelerate(model)',
    fill=lambda trace: _accelerated(trace),
)
EPISODES = Remedy(
    "Evaluate less: every `eval_freq` calls of the envs `n_eval_episodes` are played. A fifth of either costs a fifth.",
    'callback = EvalCallback(gymnasium.make("CartPole-v1"), eval_freq=1000, n_eval_episodes=20)',
    "import gymnasium\nfrom stable_baselines3.common.callbacks import EvalCallback\n\n"
    'callback = EvalCallback(gymnasium.make("CartPole-v1"), eval_freq=5000, n_eval_episodes=20)',
)
DUMMY = Remedy(
    "Step cheap envs in this process: a message to a worker and back costs more than they do.",
    'env = make_vec_env("CartPole-v1", n_envs=8, vec_env_cls=SubprocVecEnv)',
    "from stable_baselines3.common.env_util import make_vec_env\n"
    "from stable_baselines3.common.vec_env import DummyVecEnv\n\n"
    'env = make_vec_env("CartPole-v1", n_envs=8, vec_env_cls=DummyVecEnv)',
    fill=lambda trace: _in_this_process(trace),
)


def _accelerated(trace: Trace) -> str:
    name, env = trace.setup.algorithm or "DQN", trace.setup.env_id or DISCRETE
    return (
        f"from stable_baselines3 import {name}\n\nfrom hotloop.adapters.sb3 import accelerate\n\n"
        f'model = {name}("MlpPolicy", "{env}")\naccelerate(model)'
    )


def _in_this_process(trace: Trace) -> str:
    env, count = trace.setup.env_id or DISCRETE, max(1, round(trace.envs_at_once)) if trace.counts.env_calls else 8
    return (
        "from stable_baselines3.common.env_util import make_vec_env\n"
        "from stable_baselines3.common.vec_env import DummyVecEnv\n\n"
        f'env = make_vec_env("{env}", n_envs={count}, vec_env_cls=DummyVecEnv)'
    )


KNOBS += [
    Knob(SB3, "UPDATE005", ALGORITHM, GRADIENT_STEPS, OFF_POLICY),
    Knob(SB3, "UPDATE006", ALGORITHM, ACCELERATE, ("DQN", "PPO")),
    Knob(SB3, "UPDATE007", ALGORITHM, FUSED),
    Knob(SB3, "LOG003", EVALUATION, EPISODES),
    Knob(SB3, "MACHINE003", VECTOR_ENV, DUMMY),
]
