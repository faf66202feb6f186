import argparse
import logging
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch

from lander.agent import DDPGAgent
from lander.buffer import ReplayBuffer
from lander.config import load_config

log = logging.getLogger("lander")


def train(config, env_steps):
    torch.manual_seed(config.seed)
    np.random.seed(config.seed)
    env = gym.make(config.env_id)
    obs_dim, act_dim = env.observation_space.shape[0], env.action_space.shape[0]
    agent = DDPGAgent(obs_dim, act_dim, float(env.action_space.high[0]), config.agent)
    buffer = ReplayBuffer(config.training.buffer_size, obs_dim, act_dim)
    obs, _ = env.reset(seed=config.seed)
    episode_return, returns, losses = 0.0, [], {}
    for step in range(1, env_steps + 1):
        action = env.action_space.sample() if step <= config.training.start_steps else agent.act(obs)
        next_obs, reward, terminated, truncated, _ = env.step(action)
        buffer.store(obs, action, reward, next_obs, terminated)
        episode_return += reward
        obs = next_obs
        if terminated or truncated:
            returns.append(episode_return)
            episode_return = 0.0
            obs, _ = env.reset()
        if step > config.training.start_steps:
            losses = agent.update(buffer.sample(config.training.batch_size))
        if step % config.get("training.log_every", 1000) == 0:
            log.info("step %d return %.1f %s", step, np.mean(returns[-10:] or [0]), losses)
    torch.save(agent.actor.state_dict(), "actor.pt")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("env_steps", type=int)
    parser.add_argument("--config", default=str(Path(__file__).parents[1] / "config" / "pendulum.yaml"))
    parser.add_argument("overrides", nargs="*")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    train(load_config(args.config, args.overrides), args.env_steps)


if __name__ == "__main__":
    main()
