"""Stable-Baselines3 acts and learns call by call. Remedy: `accelerate`, in place."""

import gymnasium
from stable_baselines3 import DQN
from training import OUTCOME, Stopwatch, arguments, parameters_of

from hotloop.adapters.sb3 import accelerate

options = arguments(env_calls=4000)
env = gymnasium.make("CartPole-v1")
model = DQN("MlpPolicy", env, learning_starts=100, train_freq=4, buffer_size=20_000, seed=0, device="cpu")
if options.healthy:
    accelerate(model)
watch = Stopwatch()
model.learn(options.env_calls)
watch.say(options.env_calls)
OUTCOME["parameters"] = parameters_of(model.q_net)
