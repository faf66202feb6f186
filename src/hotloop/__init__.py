"""Hotloop: train deep-RL agents at the speed of the machine, see where the time goes, prove the fast version right.

    settings = hotloop.preset("cartpole-dqn", seed=1)
    result = hotloop.train(settings)
    agent = hotloop.load(result["run"])
    action = agent.act(observation)

What the command line does is a function here: `train`, `resume`, `evaluate`, `watch`, `report`, `export_agent`, `tune`,
`diagnose`, `prove`, `compare`. Packages are nouns (`hotloop.comparison`), so that no function is hidden by one.
"""

# nothing is imported here: under `python -m hotloop` the current folder is still first on the path
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hotloop.algos.dqn_settings import DQNSettings as DQNSettings
    from hotloop.algos.ppo_settings import PPOSettings as PPOSettings
    from hotloop.algos.registry import preset as preset
    from hotloop.algos.sac_settings import SACSettings as SACSettings
    from hotloop.api import evaluate as evaluate
    from hotloop.api import history as history
    from hotloop.api import iterate as iterate
    from hotloop.api import load as load
    from hotloop.api import report_page as report_page
    from hotloop.api import resume as resume
    from hotloop.api import train as train
    from hotloop.comparison.compare import compare as compare
    from hotloop.core.errors import HotloopError as HotloopError
    from hotloop.diagnosis.diagnose import diagnose as diagnose
    from hotloop.export.agent_files import export_agent as export_agent
    from hotloop.parts.advantage import gae as gae
    from hotloop.parts.policy_learner import PolicyLearner as PolicyLearner
    from hotloop.parts.q_learner import QLearner as QLearner
    from hotloop.parts.replay import Replay as Replay
    from hotloop.parts.rollout import Rollout as Rollout
    from hotloop.parts.sac_learner import SACLearner as SACLearner
    from hotloop.parts.vector_env import final_mask as final_mask
    from hotloop.parts.vector_env import final_obs as final_obs
    from hotloop.parts.vector_env import vector as vector
    from hotloop.proof.case import Case as Case
    from hotloop.proof.case import Programs as Programs
    from hotloop.proof.case import TwoSizes as TwoSizes
    from hotloop.proof.case import cases as cases
    from hotloop.proof.env_pairs import prove_envs as prove_envs
    from hotloop.proof.function_pairs import assert_same as assert_same
    from hotloop.proof.function_pairs import pair as pair
    from hotloop.proof.module_pairs import prove_modules as prove_modules
    from hotloop.proof.program_pairs import prove_programs as prove_programs
    from hotloop.proof.run import prove as prove
    from hotloop.reporting.make import report as report
    from hotloop.tuning.search import tune as tune
    from hotloop.viewing.watch import show as show
    from hotloop.viewing.watch import watch as watch

_HOMES = {
    "Case": "proof.case",
    "DQNSettings": "algos.dqn_settings",
    "HotloopError": "core.errors",
    "PPOSettings": "algos.ppo_settings",
    "Programs": "proof.case",
    "SACSettings": "algos.sac_settings",
    "PolicyLearner": "parts.policy_learner",
    "QLearner": "parts.q_learner",
    "Replay": "parts.replay",
    "Rollout": "parts.rollout",
    "SACLearner": "parts.sac_learner",
    "TwoSizes": "proof.case",
    "assert_same": "proof.function_pairs",
    "cases": "proof.case",
    "compare": "comparison.compare",
    "diagnose": "diagnosis.diagnose",
    "evaluate": "api",
    "export_agent": "export.agent_files",
    "final_mask": "parts.vector_env",
    "final_obs": "parts.vector_env",
    "gae": "parts.advantage",
    "history": "api",
    "iterate": "api",
    "load": "api",
    "pair": "proof.function_pairs",
    "preset": "algos.registry",
    "prove": "proof.run",
    "prove_envs": "proof.env_pairs",
    "prove_modules": "proof.module_pairs",
    "prove_programs": "proof.program_pairs",
    "report": "reporting.make",
    "report_page": "api",
    "resume": "api",
    "show": "viewing.watch",
    "train": "api",
    "tune": "tuning.search",
    "vector": "parts.vector_env",
    "watch": "viewing.watch",
}
"""Public name -> the module it is defined in, which is imported when the name is first asked for: `import hotloop` and
`hotloop --help` load neither PyTorch nor numba."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> "Any":
    import importlib

    if name == "__version__":
        return importlib.import_module("hotloop.core.program").hotloop_version()
    if name not in _HOMES:
        raise AttributeError(f"module 'hotloop' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hotloop.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
