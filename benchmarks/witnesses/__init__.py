"""Plain programs, the way a competent person writes them first. They import nothing of ours: they are the witness.

Files:
    dqn_cartpole.py       DQN on CartPole-v1 in one file: replay, network, epsilon-greedy, target network, Adam
    dqn_parts.py          Plain parts of DQN: loss, target, epsilon, n-step returns
    dqn_update.py         A DQN agent's learning step: modules, torch.optim.Adam, zero_grad, loss, backward, clip,
                          step
    durotaxis_env.py      A colony on a stiffness gradient as one writes it first: a Node object each, networkx for
                          the edges, a sort for the left-most, features node by node and a new dictionary of rewards
                          every step
    durotaxis_network.py  An edge-aware graph transformer with an actor and a critic: one graph per forward, or a
                          batch of graphs in one
    durotaxis_ppo.py      PPO on growing graphs: colonies stepped one after another, a value for each part of the
                          reward
    ppo_parts.py          Plain parts of PPO: advantages, entropy, update
    replays.py            Plain replay buffers: in memory, on disk, by priority
    sac_update.py         A soft actor-critic's learning step, and TD3's: modules, three torch.optim.Adam, zero_grad,
                          loss, backward, step
    sfc_dqn.py            DQN for service chains as the original trains it: one network, one state at a time, an
                          update after every action
    sfc_env.py            Service-chain provisioning as one writes it first: a dictionary per request, a scan over
                          all of them for every question
    snake_dqn.py          DQN on 256 games of snake at once: a deque of transitions, several updates per vector step
    snake_env.py          Snake for many games as one writes it first: Python loops over games, lists of cells,
                          breadth-first search
    topology.py           A network wired by a NetworkX graph: a scalar parameter per edge and per node, activations
                          in a dictionary
    topology_levels.py    The same level by level: one matrix product for all nodes of a level
"""
