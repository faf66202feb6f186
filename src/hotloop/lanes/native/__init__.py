"""The native lane: updates in machine code, one call for several.

Files:
    activation_kernels.py   Activations and their slopes over flat float32 arrays, in loops that vectorize
    branch_kernels.py       The optional first stage: branches over the parts of an observation, and the attention
                            over them
    lane.py                 The native lane: both forwards, backward, clipping, Adam and target update of k updates
                            in one machine-code call
    layout.py               Where everything lies in the native lane's memory: the plan, drawn and filled
    loss_kernels.py         Loss rows, TD errors and the gradient by the head outputs, for scalar values and for
                            distributions (C51)
    matrix_kernels.py       Matrix products and transposes of any size out of the tiles
    network_kernels.py      Forward and backward through the layers
    plan_kernels.py         Indices into the plan of a network, the int64 vector `numbers`, and into the float64
                            vector `constants`
    policy_kernels.py       All epochs of a PPO or A2C update in one call: gather, forward, loss, backward,
                            clipping, Adam
    policy_lane.py          The native lane of the actor-critic family: all epochs over a rollout in one
                            machine-code call
    policy_loss_kernels.py  Loss terms of a minibatch's rows and their gradients by the network's outputs, in double
                            precision
    policy_plan_kernels.py  Indices into what an actor-critic update is, and the rows of its statistics
    sac_kernels.py          k sequential updates of SAC, TD3 or DDPG in one call: critics, actor, temperature,
                            targets; and the actor's outputs
    sac_lane.py             The native lane of SAC, TD3 and DDPG: k updates of critics, actor, temperature and
                            targets in one machine-code call
    sac_loss_kernels.py     Actions, log-probabilities, targets and gradients by head outputs of SAC and TD3, in
                            loops along the batch
    sac_plan_kernels.py     Indices into what a SAC, TD3 or DDPG update is
    sac_stage_kernels.py    The stages of one SAC, TD3 or DDPG update: what the critics should say, their gradient,
                            and the actor's
    stack_kernels.py        Forward and backward through a stack: C multilayer networks of the same sizes that see
                            the same inputs
    stack_layout.py         Where everything lies in the memory of a stack
    stack_plan_kernels.py   Indices into the plan of a stack
    unit_kernels.py         Kernels that are compiled once each and called through a pointer from other kernels
    update_kernels.py       k sequential DQN updates in one call: both forwards, loss, backward, clipping, Adam,
                            target; and best actions
    vector_kernels.py       Vector instructions for the native lane, written as LLVM IR: matrix tiles, transposes,
                            dot products
"""
