"""Stable-Baselines3 with and without `accelerate`: processor time of the whole `learn()`, by turns, and their ratio.

python examples/sb3_in_place.py                                     # DQN on CartPole, a few seconds
python examples/sb3_in_place.py ppo Pendulum-v1 --width 256 --env-steps 20000 --rounds 5
python examples/sb3_in_place.py sac Pendulum-v1 --width 400 300 --batch 256
"""

import argparse
import statistics
import time

import torch
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm

from hotloop.adapters.sb3 import accelerate

OFF_POLICY = {"dqn": DQN, "sac": SAC, "td3": TD3}


def make_model(arguments: argparse.Namespace, seed: int) -> BaseAlgorithm:
    common = {"policy_kwargs": {"net_arch": arguments.width}, "seed": seed, "device": "cpu"}
    if arguments.algorithm == "ppo":
        return PPO("MlpPolicy", arguments.env, n_steps=min(2048, arguments.env_steps), **common)
    return OFF_POLICY[arguments.algorithm](
        "MlpPolicy", arguments.env, batch_size=arguments.batch, train_freq=1, gradient_steps=1, learning_starts=100,
        buffer_size=50_000, **common,
    )  # fmt: skip


def seconds(arguments: argparse.Namespace, seed: int, fast: bool) -> float:
    model = make_model(arguments, seed)
    if fast:
        accelerate(model, verbose=False)  # the line that it is about
    start = time.process_time()
    model.learn(arguments.env_steps)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("algorithm", choices=[*OFF_POLICY, "ppo"], nargs="?", default="dqn")
    parser.add_argument("env", nargs="?", default="CartPole-v1")
    parser.add_argument("--width", type=int, nargs="+", default=[64], help="one for both layers, or each")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--env-steps", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    arguments.width = arguments.width * 2 if len(arguments.width) == 1 else arguments.width
    torch.set_num_threads(1)
    pairs = [[seconds(arguments, seed, fast) for fast in (False, True)] for seed in range(arguments.rounds)]
    ratios = sorted(plain / fast for plain, fast in pairs)
    plain, fast = (min(pair[side] for pair in pairs) / arguments.env_steps * 1e6 for side in (0, 1))
    print(
        f"{arguments.algorithm} {arguments.env} {'-'.join(map(str, arguments.width))}: {plain:.0f} and {fast:.0f} "
        f"microseconds per env step, {statistics.median(ratios):.1f}x ({ratios[0]:.1f} to {ratios[-1]:.1f})"
    )


if __name__ == "__main__":
    main()
