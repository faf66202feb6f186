"""What is proved, one family of cases per file.

Files:
    acting.py            Cases: exploring actions, advantages and entropy
    branch_attention.py  The three-branch network with attention: acting on 32 states, and an update
    durotaxis_loop.py    Learning on growing graphs: the network, a rollout, and the whole training loop
    durotaxis_step.py    One step of 32 colonies; and two of the ideas it was once slow for, alone: the left-most
                         nodes, the reward record
    learners.py          The learners under proof: one DQN learner per lane, the plain agent beside it from the same
                         start, and their data
    loop.py              The whole training loop on CartPole against a plain single-file DQN, at equal settings and
                         equal update counts
    loss.py              The Q-loss: as the lanes compute it, and two often proposed ideas measured singly, whatever
                         comes out
    ppo_update.py        PPO's update: some epochs of minibatches over a rollout, on every lane
    prioritised.py       Prioritised replay: draw a batch, set its new priorities, over and over
    replay.py            Replay: store, and draw uniformly
    sac_update.py        The update of SAC and of TD3: critics, actor, temperature and targets, on every lane
    sfc_loop.py          The whole training loop on service chains with one update per action, at equal settings
    sfc_step.py          One step of service-chain provisioning in each of several networks, observation and action
                         mask included
    snake_loop.py        The whole training loop on 256 games of snake, at equal settings and with as many updates
                         per vector step
    snake_parts.py       Cases: flood fill, and storing the transitions of many games
    snake_step.py        One vector step of many games of snake, observations included
    topology.py          A network wired by a graph: one fused operation against a dictionary of scalars walked
                         through NetworkX
    update.py            The update: every variant on every lane, k updates per call, and the target's soft move
"""
