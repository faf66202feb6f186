"""The learners of DQN, PPO and SAC: settings or a module of anybody's in, updates and actions out.

Files:
    action_map.py     From what a policy draws to what an env takes
    advantage.py      Generalized advantage estimation for anybody's loop
    batch_input.py    What `update` is handed: a batch of anybody's, read field by field
    derived.py        What follows from a run's length and from what its env shows: shares, widths and capacities as
                      numbers
    dqn.py            The DQN learner: what an update computes, as a `QObjective`, and a lane that executes it
    graph_policies.py How an agent acts on graphs: by drawing while it learns, by its likeliest action when it is judged
    learner.py        What learners of users' modules share: observations, the choice of a lane, memory, state
    learning.py       What the learners of runs have in common, and which of them belongs to which settings
    measured.py       What an update of a learner measured, as the doors of learners return it
    networks.py       From a run's settings to its network, whatever its family
    normalizer.py     Running statistics of observations and rewards, frozen while a rollout is collected and learned
                      from
    own_network.py    A user's module as lanes take it: checked, its parameters in order, its memory shared and watched
    policy_inputs.py  What a policy learner is handed: an action space, standard deviations, a full rollout
    policy_kernels.py Epsilon-greedy draws for N envs in one call
    policy_learner.py PPO on a user's actor-critic
    ppo.py            The actor-critic learner: what an update computes, as an objective, a lane that executes it, and
                      running statistics
    q_learner.py      DQN on a user's Q-network
    sac.py            The learner of SAC, TD3 and DDPG, and its policies, exploring and judged
    sac_kernels.py    Actions of N envs in units of -1 to 1, drawn in one call
    sac_learner.py    SAC, TD3 and DDPG for anybody's loop
"""
