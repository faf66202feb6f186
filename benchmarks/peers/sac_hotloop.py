"""SAC on Pendulum through Gymnasium, by what `hotloop train` calls."""

from __future__ import annotations

from pathlib import Path

from clocked_cartpole import report
from clocked_pendulum import ENV_ID, LEARNING_STARTS, SETTINGS, read_sac_arguments

from hotloop.core.settings import as_tree
from hotloop.core.temporary import TemporaryFolder
from hotloop.core.timer import PhaseTimer
from hotloop.loop import off_policy
from hotloop.loop.contract import NullProgress
from hotloop.loop.iterate import to_the_end
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.presets.run_settings import CheckpointSettings, EvaluationSettings
from hotloop.presets.sac_network_settings import SACNetworkSettings
from hotloop.presets.sac_settings import SACOptimizerSettings, SACSettings, SACTargetSettings
from hotloop.runs.directory import Run


def main() -> None:
    arguments, hidden, batch = read_sac_arguments()
    never = 2 * arguments.total
    with TemporaryFolder("bench") as folder:
        settings = SACSettings(
            seed=arguments.seed,
            total_env_steps=arguments.total,
            learning_starts=LEARNING_STARTS,
            batch_size=batch,
            gamma=SETTINGS["gamma"],
            log_every=never,
            env=EnvSettings(id=ENV_ID),
            network=SACNetworkSettings(hidden=hidden),
            replay=ReplaySettings(buffer_size=int(SETTINGS["capacity"])),
            optimizer=SACOptimizerSettings(learning_rate=SETTINGS["lr"]),
            target=SACTargetSettings(tau=SETTINGS["tau"]),
            evaluation=EvaluationSettings(every=never, episodes=1, final_episodes=1),
            checkpoint=CheckpointSettings(every=never),
        )

        def claim_run(session: object) -> Run:
            return Run.create(str(Path(folder) / "run"), "bench", as_tree(settings))

        result = to_the_end(off_policy.rows(settings, claim_run, NullProgress(), PhaseTimer()))
    report("hotloop", result["updates"])


if __name__ == "__main__":
    main()
