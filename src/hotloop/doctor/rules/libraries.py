"""Where a library runs the loop: which of its settings decides what a rule found, and on which line it is given."""

from __future__ import annotations

from hotloop.doctor.finding import ANY, KNOBS, Knob, Remedy
from hotloop.doctor.snippets import LEFT_OPEN, number_or_open, with_argument
from hotloop.doctor.trace import Trace

SB3 = "stable_baselines3"
OFF_POLICY = ("DQN", "SAC", "TD3", "DDPG")
OPTIMISER, ALGORITHM, VECTOR_ENV = "optimiser", "algorithm", "vector env"
EVALUATION, CHECKPOINT = "evaluation", "checkpoint"
"""Keys of `Trace.made`."""
DISCRETE = "CartPole-v1"


def _model(trace: Trace, arguments: str, default: str = "PPO") -> str:
    """The constructor as the program has it, with one setting more; where it is not one line, what it begins with."""
    name = trace.setup.algorithm or default
    own = with_argument(trace.sources.get(trace.made.get(ALGORITHM, ""), "").strip(), name, arguments)
    return f"from stable_baselines3 import {name}\n\n" + (own or f"model = {name}({LEFT_OPEN}, {arguments})  # yours")


FUSED = Remedy(
    "Hand the setting through to PyTorch's optimizer: one call for all parameters.",
    'model = PPO("MlpPolicy", "CartPole-v1")',
    'from stable_baselines3 import PPO\n\nmodel = PPO("MlpPolicy", "CartPole-v1", '
    "policy_kwargs=dict(optimizer_kwargs=dict(fused=True)))",
    fill=lambda trace, where: _model(trace, "policy_kwargs=dict(optimizer_kwargs=dict(fused=True))"),
)
GRADIENT_STEPS = Remedy(
    "`gradient_steps` updates are made after every `train_freq` env steps: make fewer, and look at the learning curve.",
    'model = SAC("MlpPolicy", "Pendulum-v1", train_freq=1, gradient_steps=4)',
    'from stable_baselines3 import SAC\n\nmodel = SAC("MlpPolicy", "Pendulum-v1", train_freq=1, gradient_steps=1)',
    fill=lambda trace, where: _fewer_steps(trace),
)
ZOO_FUSED = Remedy(
    "rl_zoo3 makes the model: hand the setting through its hyperparameters, on the command line or in the yaml file.",
    "python -m rl_zoo3.train --algo dqn --env CartPole-v1",
    '--hyperparams "policy_kwargs:dict(optimizer_kwargs=dict(fused=True))"  # keep the policy_kwargs that are there',
)
FACTORY = Remedy(
    "d3rlpy makes the optimizer by a factory that you may give it: one whose optimizer is fused.",
    "dqn = d3rlpy.algos.DQNConfig(batch_size=32).create()",
    "import d3rlpy\nimport torch\n\n\n"
    "class FusedAdam(d3rlpy.optimizers.AdamFactory):\n"
    "    def create(self, named_modules, lr, compiled):\n"
    "        made = super().create(named_modules, lr, compiled)\n"
    "        for group in made.optim.param_groups:\n"
    '            group["fused"] = True\n'
    "        return made\n\n\n"
    "dqn = d3rlpy.algos.DQNConfig(batch_size=32, optim_factory=FusedAdam()).create()  # with your other settings",
)
HANDED_ON = Remedy(
    "A library makes the optimizer, not a line of yours: set `fused` on it once it is made. Where the library takes "
    "arguments for its optimizer, `fused=True` among them may do the same; some drop it, so look at `param_groups`.",
    "agent = Agent(network)",
    "for group in agent.optimizer.param_groups:  # or wherever the library keeps its optimizer\n"
    '    group["fused"] = True  # before the first update',
    fill=lambda trace, where: _handed_on(trace),
)
UNCHECKED = Remedy(
    "Switch the checks off once the program works, before the library makes its model: they look for NaN and "
    "impossible values in every argument and sample. The numbers stay the same; wrong ones are no longer noticed.",
    'model = PPO("MlpPolicy", "CartPole-v1")',
    "import torch\n\ntorch.distributions.Distribution.set_default_validate_args(False)",
)
EPISODES = Remedy(
    "Evaluate less: every `eval_freq` calls of the envs `n_eval_episodes` are played. A fifth of either costs a fifth.",
    'callback = EvalCallback(gymnasium.make("CartPole-v1"), eval_freq=1000, n_eval_episodes=20)',
    "import gymnasium\nfrom stable_baselines3.common.callbacks import EvalCallback\n\n"
    'callback = EvalCallback(gymnasium.make("CartPole-v1"), eval_freq=5000, n_eval_episodes=20)',
    fill=lambda trace, where: _seldom_evaluated(trace),
)
CHECKPOINTS = Remedy(
    "Save less often: `save_freq` is in calls of the envs. With `save_replay_buffer` the whole replay is written each "
    "time, its empty rows too.",
    'callback = CheckpointCallback(save_freq=100, save_path="checkpoints", save_replay_buffer=True)',
    "from stable_baselines3.common.callbacks import CheckpointCallback\n\n"
    'callback = CheckpointCallback(save_freq=2000, save_path="checkpoints", save_replay_buffer=True)',
    fill=lambda trace, where: _seldom_saved(trace),
)
DUMMY = Remedy(
    "Step cheap envs in this process: a message to a worker and back costs more than they do.",
    'env = make_vec_env("CartPole-v1", n_envs=8, vec_env_cls=SubprocVecEnv)',
    "from stable_baselines3.common.env_util import make_vec_env\n"
    "from stable_baselines3.common.vec_env import DummyVecEnv\n\n"
    'env = make_vec_env("CartPole-v1", n_envs=8, vec_env_cls=DummyVecEnv)',
    fill=lambda trace, where: _in_this_process(trace),
)


def _handed_on(trace: Trace) -> str:
    """With the library's own line, which shows how its optimizer is called."""
    where = trace.makers.get(OPTIMISER, ("", ""))[1]
    source = trace.sources.get(where, "").partition("#")[0].strip()
    whole = source.count("(") == source.count(")")
    made = f"# {where} makes it: {source}{'' if whole else '...)'}\n" if source else ""
    return f"{made}{HANDED_ON.after}"


def _fewer_steps(trace: Trace) -> str:
    """The program's own line, where it does not say how many."""
    source = trace.sources.get(trace.made.get(ALGORITHM, ""), "").strip()
    if "gradient_steps" in source or "train_freq" in source:
        return f"{source}  # a quarter of the updates: `train_freq` times four, or a quarter of `gradient_steps`"
    return _model(trace, "train_freq=4, gradient_steps=1", "SAC")


def _seldom_evaluated(trace: Trace) -> str:
    """Five times the program's own `eval_freq`."""
    setup = trace.setup
    own = f"eval_freq={number_or_open(5 * setup.eval_freq)}, n_eval_episodes={number_or_open(setup.n_eval_episodes)}"
    env = f'gymnasium.make("{setup.env_id}")' if setup.env_id else LEFT_OPEN
    text = EPISODES.after.replace("eval_freq=5000, n_eval_episodes=20", own)
    return text.replace(f'gymnasium.make("{DISCRETE}")', env)


def _seldom_saved(trace: Trace) -> str:
    """Twenty times the program's own `save_freq`, which is what is promised."""
    return CHECKPOINTS.after.replace("save_freq=2000", f"save_freq={number_or_open(20 * trace.setup.save_freq)}")


def _in_this_process(trace: Trace) -> str:
    env = f'"{trace.setup.env_id}"' if trace.setup.env_id else LEFT_OPEN
    count = number_or_open(max(1, round(trace.envs_at_once)) if trace.counts.env_calls else 0)
    return (
        "from stable_baselines3.common.env_util import make_vec_env\n"
        "from stable_baselines3.common.vec_env import DummyVecEnv\n\n"
        f"env = make_vec_env({env}, n_envs={count}, vec_env_cls=DummyVecEnv)"
    )


KNOBS += [
    Knob(SB3, "UPDATE005", ALGORITHM, GRADIENT_STEPS, OFF_POLICY),
    Knob(SB3, "UPDATE007", ALGORITHM, FUSED),
    Knob("rl_zoo3", "UPDATE007", ALGORITHM, ZOO_FUSED),
    Knob("d3rlpy", "UPDATE007", OPTIMISER, FACTORY),
    Knob(ANY, "UPDATE007", OPTIMISER, HANDED_ON),
    Knob(ANY, "UPDATE011", ALGORITHM, UNCHECKED),
    Knob(SB3, "LOG003", EVALUATION, EPISODES),
    Knob(SB3, "LOG002", CHECKPOINT, CHECKPOINTS),
    Knob(SB3, "MACHINE003", VECTOR_ENV, DUMMY),
]
