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

    from hotloop.api import evaluate as evaluate
    from hotloop.api import history as history
    from hotloop.api import iterate as iterate
    from hotloop.api import load as load
    from hotloop.api import resume as resume
    from hotloop.api import train as train
    from hotloop.comparison.compare import compare as compare
    from hotloop.core.errors import HotloopError as HotloopError
    from hotloop.core.types import Batch as Batch
    from hotloop.core.workloads import Workload as Workload
    from hotloop.diagnosis.diagnose import diagnose as diagnose
    from hotloop.envs.vector_env import final_mask as final_mask
    from hotloop.envs.vector_env import final_obs as final_obs
    from hotloop.envs.vector_env import vector as vector
    from hotloop.export.agent_files import export_agent as export_agent
    from hotloop.learners.advantage import gae as gae
    from hotloop.learners.policy_learner import PolicyLearner as PolicyLearner
    from hotloop.learners.q_learner import QLearner as QLearner
    from hotloop.learners.sac_learner import SACLearner as SACLearner
    from hotloop.presets.dqn_settings import DQNSettings as DQNSettings
    from hotloop.presets.ppo_settings import PPOSettings as PPOSettings
    from hotloop.presets.registry import preset as preset
    from hotloop.presets.sac_settings import SACSettings as SACSettings
    from hotloop.proof.case import Case as Case
    from hotloop.proof.case import Programs as Programs
    from hotloop.proof.case import TwoSizes as TwoSizes
    from hotloop.proof.case import cases as cases
    from hotloop.proof.function_pairs import assert_same as assert_same
    from hotloop.proof.function_pairs import pair as pair
    from hotloop.proof.prove import prove as prove
    from hotloop.replay.replay import Replay as Replay
    from hotloop.replay.rollout import Note as Note
    from hotloop.replay.rollout import Rollout as Rollout
    from hotloop.reporting.make import report as report
    from hotloop.tuning.search import tune as tune
    from hotloop.viewing.watch import watch as watch

_HOMES = {
    "Batch": "core.types",
    "Case": "proof.case",
    "DQNSettings": "presets.dqn_settings",
    "HotloopError": "core.errors",
    "PPOSettings": "presets.ppo_settings",
    "Programs": "proof.case",
    "SACSettings": "presets.sac_settings",
    "Note": "replay.rollout",
    "PolicyLearner": "learners.policy_learner",
    "QLearner": "learners.q_learner",
    "Replay": "replay.replay",
    "Rollout": "replay.rollout",
    "SACLearner": "learners.sac_learner",
    "TwoSizes": "proof.case",
    "Workload": "core.workloads",
    "assert_same": "proof.function_pairs",
    "cases": "proof.case",
    "compare": "comparison.compare",
    "diagnose": "diagnosis.diagnose",
    "evaluate": "api",
    "export_agent": "export.agent_files",
    "final_mask": "envs.vector_env",
    "final_obs": "envs.vector_env",
    "gae": "learners.advantage",
    "history": "api",
    "iterate": "api",
    "load": "api",
    "pair": "proof.function_pairs",
    "preset": "presets.registry",
    "prove": "proof.prove",
    "report": "reporting.make",
    "resume": "api",
    "train": "api",
    "tune": "tuning.search",
    "vector": "envs.vector_env",
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
    with importlib.import_module("hotloop.core.extras").explained_imports(f"`hotloop.{name}`"):
        return getattr(importlib.import_module(f"hotloop.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
