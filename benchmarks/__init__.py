"""Benchmarks: every fast path of hotloop held equal to a plain program, then timed against it. Not installed.

    hotloop prove benchmarks --list
    hotloop prove benchmarks/update.py::dqn-update/native

A file of cases has functions marked `@hotloop.cases`, as anybody's has (docs/prove.md); `small` asks for sizes that a
test can pay. `make figures` measures what the documents quote.

Files:
    acting.py            Cases: exploring actions, advantages and entropy
    all_cases.py         All our cases: as they are measured, and at sizes for tests
    branch_attention.py  The three-branch network with attention: acting on 32 states, and an update
    command.py           What the commands below have in common: their options, and how they answer
    durotaxis_loop.py    Learning on growing graphs: the network, a rollout, and the whole training loop
    durotaxis_step.py    One step of 32 colonies; and two of the ideas it was once slow for, alone: the left-most nodes,
                         the reward record
    figures.py           Figures kept in docs/results/prove.json, and the documents that quote them: tables are made
                         from it, quotes held against it
    lane_times.py        What an update costs on each lane, and whether the rule behind `lane = auto` chooses well
    lanes.py             `python -m benchmarks.lanes`: the table of it
    learners.py          The learners under proof: one DQN learner per lane, the plain agent beside it from the same
                         start, and their data
    loop.py              The whole training loop on CartPole against a plain single-file DQN, at equal settings and
                         equal update counts
    loss.py              The Q-loss: as the lanes compute it, and two often proposed ideas measured singly, whatever
                         comes out
    peers/               `python -m benchmarks.peers`: the same work in other libraries
    ppo_update.py        PPO's update: some epochs of minibatches over a rollout, on every lane
    prioritized.py       Prioritized replay: draw a batch, set its new priorities, over and over
    replay.py            Replay: store, and draw uniformly
    sac_update.py        The update of SAC and of TD3: critics, actor, temperature and targets, on every lane
    sfc_loop.py          The whole training loop on service chains with one update per action, at equal settings
    sfc_step.py          One step of service-chain provisioning in each of several networks, observation and action mask
                         included
    snake_loop.py        The whole training loop on 256 games of snake, at equal settings and with as many updates per
                         vector step
    snake_parts.py       Cases: flood fill, and storing the transitions of many games
    snake_step.py        One vector step of many games of snake, observations included
    topology.py          A network wired by a graph: one fused operation against two plain programs, node by node and
                         level by level
    update.py            The update: every variant on every lane, k updates per call, and the target's soft move
    witnesses/           Plain programs, the way a competent person writes them first; they import nothing of ours
    workers.py           `python -m benchmarks.workers`: envs in worker processes against Gymnasium's AsyncVectorEnv
"""
