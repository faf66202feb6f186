"""Other libraries' programs made fast in place, by the parts that our own loops are made of.

Files:
    sb3/  Stable-Baselines3: `accelerate(model)` of a DQN, PPO, SAC, TD3 or DDPG
"""
