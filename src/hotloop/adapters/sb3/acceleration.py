"""`accelerate(model)`: which models it is for, what it changes, what it says, and how it is undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from gymnasium import spaces
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn

from hotloop.adapters.sb3.actor_critic import QuickActorCritic
from hotloop.adapters.sb3.dqn import QEngine, QuickDQN, QuickQPolicy, read_dqn
from hotloop.adapters.sb3.in_place import STATE, is_quick, overridden, plain_class, quicken, slow_down
from hotloop.adapters.sb3.memory import steps_problem
from hotloop.adapters.sb3.ppo import PolicyEngine, QuickPPO, QuickRolloutBuffer, read_ppo
from hotloop.adapters.sb3.replay import is_plain_buffer
from hotloop.adapters.sb3.sac import QuickSAC, QuickTD3, SACEngine, updates_problem
from hotloop.adapters.sb3.squashed import QuickSquashedPolicy, Stacks, read_stacks
from hotloop.adapters.sb3.vector_env import QuickDummyVecEnv, innermost
from hotloop.core.errors import ArgumentError
from hotloop.core.terminal import say
from hotloop.nets.reading import Reading

Model = TypeVar("Model", bound=BaseAlgorithm)


@dataclass(frozen=True)
class AccelerationReport:
    """What was made fast, and what was left as it is, with the reason."""

    fast: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        fast = f"fast: {', '.join(self.fast)}" if self.fast else ""
        return "; ".join(part for part in (fast, f"left alone: {', '.join(self.left)}" if self.left else "") if part)


class Acceleration:
    """What an accelerated model holds on to."""

    def __init__(
        self, engine: QEngine | PolicyEngine | SACEngine, report: AccelerationReport, things: list[Any]
    ) -> None:
        self.engine, self.report, self.things = engine, report, things

    def is_ready(self, model: BaseAlgorithm) -> bool:
        """Whether machine code can train the model as it is now. Where `set_parameters` or somebody else has given it
        other memory, it is accelerated anew; if it became another model, Stable-Baselines3 goes on with it."""
        if self.engine.is_shared(model) and not settings_problem(model):
            return True
        accelerate(model, verbose=False)
        if not is_quick(model):
            say(f"hotloop: {type(model).__name__} is left to Stable-Baselines3 from here on: {_read(model)[1]}")
        return is_quick(model)


def accelerate(model: Model, verbose: bool = True) -> Model:
    """Make a `DQN`, `PPO`, `SAC`, `TD3` or `DDPG` of Stable-Baselines3 with a multilayer policy fast in place; returns
    the same model.

    >>> from stable_baselines3 import DQN
    >>> from hotloop.adapters.sb3 import accelerate, report
    >>> model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50, device="cpu")
    >>> accelerate(model, verbose=False) is model
    True
    >>> _ = model.learn(100)
    >>> report(model).left
    ()

    `train()` runs on the native lane on the same samples, acting too; storage and vector env lose copies that nobody
    reads. API, callbacks, logger, random draws and files stay. A model that cannot be accelerated is left as it is;
    one line on stderr (unless `verbose` is False) and `report(model)` say why. `restore(model)` undoes it.
    """
    if not isinstance(model, BaseAlgorithm):
        raise ArgumentError(f"`model` is a {type(model).__name__}; expected a model of Stable-Baselines3", "e.g. a DQN")
    restore(model)
    reading, problem = _read(model)
    if reading is None or problem:
        if verbose:
            say(f"hotloop: {type(model).__name__} is left as it is: {problem}")
        return model
    if isinstance(model, PPO):
        assert isinstance(reading, Reading)
        made = _accelerate_ppo(model, reading)
    else:
        made = _accelerate_off_policy(model, reading)
    if verbose:
        say(f"hotloop: {type(model).__name__}: {made.report}")
    return model


def _accelerate_off_policy(model: DQN | SAC | TD3, reading: Reading | Stacks) -> Acceleration:
    engine = SACEngine(model, reading) if isinstance(reading, Stacks) else QEngine(model, reading)
    fast, left, things = ["train", "act"], list[str](), [model, model.policy]
    if is_plain_buffer(model):
        fast.append("replay")
    else:
        left.append(f"replay ({_replay_reason(model)})")
    _quicken_env(model, fast, left, things)
    made = Acceleration(engine, AccelerationReport(tuple(fast), tuple(left)), things)
    quicken(model.policy, QuickQPolicy if isinstance(model, DQN) else QuickSquashedPolicy, engine)
    quicken(model, _methods(model), made)
    return made


def _methods(model: DQN | SAC | TD3) -> type:
    return QuickDQN if isinstance(model, DQN) else QuickSAC if isinstance(model, SAC) else QuickTD3


def _accelerate_ppo(model: PPO, reading: Reading) -> Acceleration:
    engine = PolicyEngine(model, reading)
    fast, left, things = ["train", "act", "rollout"], list[str](), [model, model.policy, model.rollout_buffer]
    _quicken_env(model, fast, left, things)
    made = Acceleration(engine, AccelerationReport(tuple(fast), tuple(left)), things)
    quicken(model.policy, QuickActorCritic, engine)
    quicken(model.rollout_buffer, QuickRolloutBuffer, engine)
    quicken(model, QuickPPO, made)
    return made


def _quicken_env(model: BaseAlgorithm, fast: list[str], left: list[str], things: list[Any]) -> None:
    env = innermost(model.get_env())
    if env is None:
        return
    if plain_class(env) is DummyVecEnv:
        quicken(env, QuickDummyVecEnv, None)
        fast.append("vector env")
        things.append(env)
    else:
        left.append(f"vector env (a {type(env).__name__})")


def _replay_reason(model: OffPolicyAlgorithm) -> str:
    if model._vec_normalize_env is not None:
        return "VecNormalize scales samples"
    if model.replay_buffer.optimize_memory_usage:
        return "optimize_memory_usage"
    return f"a {type(model.replay_buffer).__name__}"


def restore(model: Model) -> Model:
    """Undo `accelerate`: the model trains by Stable-Baselines3's own methods, from where it is."""
    held = model.__dict__.get(STATE)
    for thing in held.things if held is not None else ():
        slow_down(thing)
    return model


def report(model: BaseAlgorithm) -> AccelerationReport:
    """What of the model is fast and what is not, with reasons."""
    held = model.__dict__.get(STATE)
    return held.report if held is not None else AccelerationReport(left=(_read(model)[1] or "it was not accelerated",))


def _optimized(model: BaseAlgorithm) -> list[tuple[torch.optim.Optimizer, nn.Module]]:
    """The model's optimizers, and what each of them moves."""
    if isinstance(model, SAC | TD3):
        return [(part.optimizer, part) for part in (model.actor, model.critic)]
    return [(model.policy.optimizer, model.policy.q_net if isinstance(model, DQN) else model.policy)]


def settings_problem(model: BaseAlgorithm) -> str:
    """What may change from one `train` to the next, and native updates do not know."""
    optimizers = [optimizer for optimizer, _ in _optimized(model)]
    if isinstance(model, SAC) and model.ent_coef_optimizer is not None:
        optimizers.append(model.ent_coef_optimizer)
    if problem := next(filter(None, map(_optimizer_problem, optimizers)), ""):
        return problem
    if isinstance(model, SAC | TD3):
        constants = {(*one.param_groups[0]["betas"], one.param_groups[0]["eps"]) for one in optimizers}
        return updates_problem(model) if len(constants) == 1 else "its optimizers have different constants"
    if not model.max_grad_norm > 0.0:
        return f"its `max_grad_norm` is {model.max_grad_norm}"
    if isinstance(model, PPO) and plain_class(model.rollout_buffer) is not RolloutBuffer:
        return f"its rollouts are kept in a {type(model.rollout_buffer).__name__}"
    return ""


def _optimizer_problem(optimizer: torch.optim.Optimizer) -> str:
    if type(optimizer) is not torch.optim.Adam:
        return f"its optimizer is {type(optimizer).__name__}, not Adam"
    group = optimizer.param_groups[0]
    for name in ("weight_decay", "amsgrad", "maximize", "decoupled_weight_decay"):
        if group.get(name):
            return f"its optimizer has `{name}`"
    return "its optimizer has several groups of parameters" if len(optimizer.param_groups) > 1 else ""


def _read(model: BaseAlgorithm) -> tuple[Reading | Stacks | None, str]:
    """The model's networks as the native lane takes them, and why not."""
    if not isinstance(model, DQN | PPO | SAC | TD3):
        return None, "only DQN, PPO, SAC, TD3 and DDPG can be accelerated"
    if model.device.type != "cpu":
        return None, f'it is on `{model.device}`; the native lane runs on a CPU (`device="cpu"`)'
    space = model.observation_space
    if not isinstance(space, spaces.Box):
        return None, f"its observations are {type(space).__name__}, not Box"
    if problem := settings_problem(model) or _frozen(model):
        return None, problem
    if isinstance(model, SAC | TD3):
        if name := overridden(_methods(model), model, SAC if isinstance(model, SAC) else TD3):
            return None, f"its class {type(model).__name__} has a `{name}` of its own"
        return read_stacks(model)
    return read_dqn(model) if isinstance(model, DQN) else read_ppo(model)


def _frozen(model: BaseAlgorithm) -> str:
    """Why not every parameter would move as Adam moves it."""
    for optimizer, network in _optimized(model):
        held = {id(parameter) for parameter in optimizer.param_groups[0]["params"]}
        for name, parameter in network.named_parameters():
            if not parameter.requires_grad:
                return f"its parameter `{name}` is frozen"
            if id(parameter) not in held:
                return f"its parameter `{name}` is not in its optimizer"
            if parameter.dtype != torch.float32:
                return f"its parameter `{name}` is {parameter.dtype}"
        if problem := steps_problem(optimizer):
            return problem
    return ""
