"""skrl's DQN on CartPole, as its examples go: instantiated models, a random memory, a sequential trainer."""

import sys

import gymnasium as gym
from skrl.agents.torch.dqn import DQN, DQN_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed
from skrl.utils.model_instantiators.torch import deterministic_model

set_seed(42)
timesteps = int(sys.argv[1])
env = wrap_env(gym.make("CartPole-v1"))
device = env.device
memory = RandomMemory(memory_size=50000, num_envs=env.num_envs, device=device, replacement=False)

models = {}
for name in ("q_network", "target_q_network"):
    models[name] = deterministic_model(
        observation_space=env.observation_space,
        action_space=env.action_space,
        device=device,
        network=[{"name": "net", "input": "OBSERVATIONS", "layers": [64, 64], "activations": "relu"}],
        output="ACTIONS",
    )
for name, model in models.items():
    model.init_state_dict(role=name)
    model.init_parameters(method_name="normal_", mean=0.0, std=0.1)

cfg = DQN_CFG()
cfg.learning_starts = 100
cfg.exploration_scheduler = lambda timestep, timesteps: max(0.04, 1 - timestep / 1500)
cfg.experiment.write_interval = 1000
cfg.experiment.checkpoint_interval = 5000
cfg.experiment.directory = "runs/torch/CartPole"

agent = DQN(
    models=models,
    memory=memory,
    cfg=cfg,
    observation_space=env.observation_space,
    action_space=env.action_space,
    device=device,
)
trainer = SequentialTrainer(cfg={"timesteps": timesteps, "headless": True}, env=env, agents=agent)
trainer.train()
