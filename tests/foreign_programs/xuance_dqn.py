"""XuanCe's DQN on CartPole by its runner, as its documentation shows."""

import argparse

import xuance


def parse_args():
    parser = argparse.ArgumentParser("Example of XuanCe.")
    parser.add_argument("running_steps", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--render", type=bool, default=False)
    return parser.parse_args()


if __name__ == "__main__":
    runner = xuance.get_runner(algo="dqn", env="classic_control", env_id="CartPole-v1", parser_args=parse_args())
    runner.run(mode="train")
