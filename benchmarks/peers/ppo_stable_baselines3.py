"""PPO on CartPole in Stable-Baselines3: `PPO("MlpPolicy", env).learn(...)` on its DummyVecEnv."""

from __future__ import annotations

import torch
from clocked_cartpole import ENV_ID, HIDDEN, WINDOW, read_arguments, report
from ppo_cartpole import ADAM_EPSILON, BATCH, EPOCHS, NUM_ENVS, ROLLOUT, ROLLOUT_STEPS, SETTINGS, whole_rollouts
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env


def main() -> None:
    arguments = read_arguments()
    WINDOW.start, WINDOW.end = whole_rollouts(WINDOW.start), whole_rollouts(WINDOW.end)
    torch.set_num_threads(1)
    model = PPO(
        "MlpPolicy",
        make_vec_env(ENV_ID, NUM_ENVS, seed=arguments.seed),
        learning_rate=SETTINGS["lr"],
        n_steps=ROLLOUT_STEPS,
        batch_size=BATCH,
        n_epochs=EPOCHS,
        gamma=SETTINGS["gamma"],
        gae_lambda=SETTINGS["gae_lambda"],
        clip_range=SETTINGS["clip"],
        ent_coef=SETTINGS["entropy"],
        vf_coef=SETTINGS["value"],
        max_grad_norm=SETTINGS["norm"],
        policy_kwargs={"net_arch": list(HIDDEN), "optimizer_kwargs": {"eps": ADAM_EPSILON}},
        seed=arguments.seed,
        device="cpu",
        verbose=0,
    )
    model.learn(WINDOW.end + ROLLOUT, log_interval=10**9)
    report("stable-baselines3", model._n_updates * ROLLOUT // BATCH)


if __name__ == "__main__":
    main()
