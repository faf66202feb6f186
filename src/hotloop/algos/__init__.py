"""Settings of the algorithms, and where they come from.

Files:
    dqn_settings.py Every setting of the DQN family
    ppo_settings.py Every setting of the actor-critic family: PPO, and A2C as `policy_loss = "plain"` with one epoch
    registry.py     The settings of a run, wherever they come from: a preset with overrides, words of a command line, a
                    run's directory
    run_settings.py What every algorithm's runs have: evaluations and checkpoints; and what those share that learn from
                    replay
    sac_settings.py Every setting of the soft actor-critic family: SAC, TD3 and DDPG
"""
