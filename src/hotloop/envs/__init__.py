"""Environments: the contract, the registry, CartPole, and any of Gymnasium's.

Files:
    as_gymnasium.py      A batched env as Gymnasium's, for anybody's agent: alone, or several stepped together
    cartpole.py          CartPole, batched: one kernel call steps every env, equal to Gymnasium's CartPole-v1 up to
                         its random numbers
    cartpole_draw.py     A cart and its pole as a picture or as text for a terminal, from a saved state
    cartpole_kernels.py  CartPole's dynamics for N envs in one call (Barto, Sutton and Anderson 1983; Gymnasium's
                         constants)
    contract.py          What every VecEnv promises, checked by playing it: `hotloop envs check ID`, and one test
                         over all of ours
    contract_play.py     Random legal play, recorded: the raw material of the contract checks
    foreign.py           Blaming the right env: every mistake of an env we did not write becomes one error that
                         names env, index and field
    gymnasium_envs.py    Single Gymnasium envs stepped side by side, each answer checked as it is copied
    gymnasium_make.py    Making Gymnasium envs, single or vectorized, with errors that say what to install or change
    gymnasium_vector.py  A Gymnasium VectorEnv as ours, whichever of the three ways it resets
    observations.py      Observations of any shape as arrays we own: the parts of a space in a flat list, and
                         encoders that write them
    registry.py          From an id to envs
    spaces.py            Gymnasium spaces as ours: the parts of observations, and actions
    user_files.py        Envs in a file of the user's own: `path/to/file.py:Class`, or `path/to/file.py:function` that
                         makes one
    vector_env.py        Envs for anybody's loop: any env, several at once, as a Gymnasium VectorEnv
    workers/             Environments in processes of their own
    wrappers.py          Single envs in Gymnasium's wrappers, by what `presets/env_wrappers.py` reads
"""
