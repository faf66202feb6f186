"""DQN on CartPole, through Gymnasium or native, by what `hotloop train` calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clocked_cartpole import (
    ENV_ID,
    HIDDEN,
    LEARNING_STARTS,
    MAX_GRADIENT_NORM,
    SETTINGS,
    WINDOW,
    read_arguments,
    report,
)

from hotloop.core.schedules import Schedule
from hotloop.core.settings import as_tree
from hotloop.core.temporary import TemporaryFolder
from hotloop.core.timer import PhaseTimer
from hotloop.envs.cartpole import CartPole
from hotloop.loop import off_policy
from hotloop.loop.contract import NullProgress
from hotloop.loop.iterate import to_the_end
from hotloop.presets.dqn_settings import (
    CheckpointSettings,
    DQNSettings,
    EvaluationSettings,
    OptimizerSettings,
    TargetSettings,
)
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.network_settings import NetworkSettings
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.runs.directory import Run


def clock_native_env(num_envs: int = 1) -> str:
    """Read the same clock in our own CartPole; its name."""
    step = CartPole.step

    def clocked_step(envs: CartPole, action: Any) -> Any:
        WINDOW.step_begins(num_envs)
        return step(envs, action)

    CartPole.step = clocked_step  # type: ignore[assignment,method-assign]
    return "cartpole"


def main() -> None:
    arguments = read_arguments()
    env_id = clock_native_env() if arguments.native_env else ENV_ID
    never = 2 * arguments.total
    with TemporaryFolder("bench") as folder:
        settings = DQNSettings(
            seed=arguments.seed,
            total_env_steps=arguments.total,
            updates_per_env_step=f"1/{arguments.update_every}",
            learning_starts=LEARNING_STARTS,
            batch_size=SETTINGS["batch"],
            gamma=SETTINGS["gamma"],
            log_every=never,
            env=EnvSettings(id=env_id),
            network=NetworkSettings(hidden=HIDDEN),
            replay=ReplaySettings(buffer_size=SETTINGS["capacity"]),
            exploration=Schedule(start=SETTINGS["epsilon"]),
            optimizer=OptimizerSettings(learning_rate=SETTINGS["lr"], max_grad_norm=MAX_GRADIENT_NORM),
            target=TargetSettings(every=SETTINGS["target_every"], unit="env_steps"),
            evaluation=EvaluationSettings(every=never, episodes=1, final_episodes=1),
            checkpoint=CheckpointSettings(every=never),
        )

        def claim_run(session: object) -> Run:
            return Run.create(str(Path(folder) / "run"), "bench", as_tree(settings))

        result = to_the_end(off_policy.rows(settings, claim_run, NullProgress(), PhaseTimer()))
    report("hotloop", result["updates"])


if __name__ == "__main__":
    main()
