"""Algorithms: policy and learner of each.

Files:
    action_map.py      From what a policy draws to what an env takes
    derived.py         What follows from a run's length and from what its env shows: shares, widths and capacities as
                       numbers
    dqn.py             The DQN learner: what an update computes, as a `QObjective`, and a lane that executes it
    graph_policies.py  How an agent acts on graphs: by drawing while it learns, by its likeliest action when it is
                       judged
    normaliser.py      Running statistics of observations and rewards, frozen while a rollout is collected and
                       learned from
    off_policy.py      What learners that learn from replay have in common, and which of them belongs to which settings
    policy_kernels.py  Epsilon-greedy draws for N envs in one call
    ppo.py             The actor-critic learner: what an update computes, as an objective, a lane that executes it,
                       and running statistics
    sac.py             The learner of SAC, TD3 and DDPG, and its policies, exploring and judged
    sac_kernels.py     Actions of N envs in units of -1 to 1, drawn in one call
"""
