"""Settings of every kind of run, and settings by name: what a run is, without anything that could train it.

Files:
    dqn_settings.py          Every setting of the DQN family
    env_names.py             What an env's name says before any env is made: whether it names one, and whether making it
                             runs code of the user's
    env_settings.py          Which environment, how many of it, and how its observations are handed on
    env_wrappers.py          Gymnasium's wrappers by name: `FrameStackObservation(stack_size=4)`, read as a name and
                             literals, never evaluated
    named.py                 Named settings: one TOML file per workload and algorithm; and a file of one's own
    network_settings.py      What networks look like: Q-networks, actor-critics, graph networks, and their plain layouts
    ppo_settings.py          Every setting of the actor-critic family: PPO, and A2C as `policy_loss = "plain"` with one
                             epoch
    registry.py              The settings of a run, wherever they come from: a preset with overrides, words of a command
                             line, a run's directory
    replay_settings.py       What a user may choose about replay
    run_settings.py          What every algorithm's runs have: evaluations and checkpoints; and what those share that
                             learn from replay
    sac_network_settings.py  What the networks of the soft actor-critic family look like, and the same as numbers
    sac_settings.py          Every setting of the soft actor-critic family: SAC, TD3 and DDPG
"""
