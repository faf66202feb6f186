"""SAC on Pendulum in SBX: Stable-Baselines3 with the update in JAX."""

from __future__ import annotations

from clocked_cartpole import report
from clocked_pendulum import ENV_ID, LEARNING_STARTS, SETTINGS, read_sac_arguments
from sbx import SAC


def main() -> None:
    arguments, hidden, batch = read_sac_arguments()
    model = SAC(
        "MlpPolicy",
        ENV_ID,
        learning_rate=SETTINGS["lr"],
        buffer_size=SETTINGS["capacity"],
        learning_starts=LEARNING_STARTS,
        batch_size=batch,
        gamma=SETTINGS["gamma"],
        tau=SETTINGS["tau"],
        policy_kwargs={"net_arch": list(hidden)},
        seed=arguments.seed,
        device="cpu",
        verbose=0,
    )
    model.learn(arguments.total + 1, log_interval=10**9)
    report("sbx-rl", model._n_updates)


if __name__ == "__main__":
    main()
