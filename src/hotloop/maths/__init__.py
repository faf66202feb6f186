"""Pure functions: tensors or arrays in, the same out.

Files:
    action_kernels.py  Actions drawn from the policy's outputs, for N envs in one call, with generators whose state
                       can be saved
    adam.py            Adam and gradient clipping on one flat vector: a few in-place passes instead of an object per
                       parameter
    distributions.py   Distributions in closed form, and those of whole actions: log-probability, entropy, KL
    gae.py             Generalized advantage estimation (Schulman et al. 2016) in plain PyTorch, and normalizing
    gae_kernels.py     Generalized advantages over a whole [T, N] slab in one backward pass, in machine code
    normal_kernels.py  Standard normal numbers from a generator whose state is one counter
    ppo.py             The terms of the PPO loss (Schulman et al. 2017), row by row
    sac.py             Soft actor-critic and its deterministic kin: squashed actions, targets, the temperature's loss
    td.py              Targets and row losses of temporal differences, scalar and categorical
"""
