"""PPO on CartPole, through Gymnasium or native, by what `hotloop train` calls."""

from __future__ import annotations

from pathlib import Path

from clocked_cartpole import ENV_ID, HIDDEN, WINDOW, read_arguments, report
from dqn_hotloop import clock_native_env
from ppo_cartpole import ADAM_EPSILON, BATCH, EPOCHS, NUM_ENVS, ROLLOUT, ROLLOUT_STEPS, SETTINGS, whole_rollouts

from hotloop.core.settings import as_tree
from hotloop.core.temporary import TemporaryFolder
from hotloop.core.timer import PhaseTimer
from hotloop.loop import on_policy
from hotloop.loop.contract import NullProgress
from hotloop.loop.iterate import to_the_end
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.network_settings import ActorCriticSettings
from hotloop.presets.ppo_settings import PolicyOptimizerSettings, PPOSettings
from hotloop.presets.run_settings import CheckpointSettings, EvaluationSettings
from hotloop.runs.directory import Run


def main() -> None:
    arguments = read_arguments()
    WINDOW.start, WINDOW.end = whole_rollouts(WINDOW.start), whole_rollouts(WINDOW.end)
    never = 10 * WINDOW.end
    env_id = clock_native_env(NUM_ENVS) if arguments.native_env else ENV_ID
    with TemporaryFolder("bench") as folder:
        settings = PPOSettings(
            seed=arguments.seed,
            total_env_steps=WINDOW.end + ROLLOUT,
            rollout_steps=ROLLOUT_STEPS,
            n_epochs=EPOCHS,
            batch_size=BATCH,
            gamma=SETTINGS["gamma"],
            gae_lambda=SETTINGS["gae_lambda"],
            clip_range=SETTINGS["clip"],
            ent_coef=SETTINGS["entropy"],
            vf_coef=SETTINGS["value"],
            log_every=never,
            env=EnvSettings(id=env_id, num_envs=NUM_ENVS),
            network=ActorCriticSettings(hidden=HIDDEN),
            optimizer=PolicyOptimizerSettings(
                learning_rate=SETTINGS["lr"], eps=ADAM_EPSILON, max_grad_norm=SETTINGS["norm"]
            ),
            evaluation=EvaluationSettings(every=never, episodes=1, final_episodes=1),
            checkpoint=CheckpointSettings(every=never),
        )

        def claim_run(session: object) -> Run:
            return Run.create(str(Path(folder) / "run"), "bench", as_tree(settings))

        result = to_the_end(on_policy.rows(settings, claim_run, NullProgress(), PhaseTimer()))
    report("hotloop", result["updates"])


if __name__ == "__main__":
    main()
