"""The same work in other libraries.

`dqn_*.py`, `ppo_*.py` and `sac_*.py` are scripts that run alone, by path, in whatever environment has the library; each
prints one JSON line.
`replay_*.py` are imported: replays are small enough to be timed side by side in one process.

Files:
    __main__.py               `python -m benchmarks.peers [NAME ...]`
    clocked_cartpole.py       Gymnasium's CartPole that reads the clock at two env steps: the same measurement
                              inside any training loop
    clocked_pendulum.py       Gymnasium's Pendulum that reads the same clock, and what every SAC script trains with
    compare.py                Hotloop against other libraries: training, replay, and the table of both
    dqn_hotloop.py            DQN on CartPole, through Gymnasium or native, by what `hotloop train` calls
    dqn_rejax.py              DQN in rejax: the whole loop, its own CartPole included, compiled by XLA. No
                              Gymnasium, and nothing to evaluate
    dqn_rlox.py               DQN on CartPole in rlox: its replay in Rust, its network and update in PyTorch
    dqn_sbx.py                DQN on CartPole in SBX: Stable-Baselines3 with the update in JAX, and without gradient
                              clipping
    dqn_stable_baselines3.py  DQN on CartPole in Stable-Baselines3: `DQN("MlpPolicy", env_id).learn(...)`, which
                              steps one env
    dqn_tianshou.py           DQN on CartPole in Tianshou 2: a collector on one env and the off-policy trainer,
                              without test episodes
    libraries.py              Which other libraries are here, and where each is looked for
    ppo_cartpole.py           What every PPO script trains with: the settings that most published PPO code has for
                              CartPole
    ppo_hotloop.py            PPO on CartPole, through Gymnasium or native, by what `hotloop train` calls
    ppo_stable_baselines3.py  PPO on CartPole in Stable-Baselines3: `PPO("MlpPolicy", env).learn(...)` on its
                              DummyVecEnv
    replay_libraries.py       Replay in four other libraries, each the way its own manual uses it: a function makes
                              the call to be timed
    replay_work.py            What is done with a replay, the rows it is done with, and our own way of doing it
    sac_hotloop.py            SAC on Pendulum through Gymnasium, by what `hotloop train` calls
    sac_sbx.py                SAC on Pendulum in SBX: Stable-Baselines3 with the update in JAX
    sac_stable_baselines3.py  SAC on Pendulum in Stable-Baselines3: `SAC("MlpPolicy", env_id).learn(...)`, which
                              steps one env
    timed_envs.py             Envs whose step takes a known time, for comparing what lies around it
"""
