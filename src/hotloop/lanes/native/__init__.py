"""The native lane: updates in machine code, one call for several.

Files:
    activation_kernels.py   Activations and their slopes over flat float32 arrays, in loops that vectorise
    branch_kernels.py       Forward and backward through branches and the attention over them; the hidden layers
                            above are `network_kernels`'
    lane.py                 The native lane: both forwards, backward, clipping, Adam and target update of k updates
                            in one machine-code call
    layout.py               Where everything lies in the native lane's memory, with and without branches
    loss_kernels.py         Loss rows, TD errors and the gradient by the head outputs, for scalar values and for
                            distributions (C51)
    matrix_kernels.py       Matrix products and transposes of any size out of the tiles
    network_kernels.py      Forward and backward through the layers
    plan_kernels.py         Where everything lies, as int64 vectors that kernels read: one argument instead of
                            thirty
    policy_kernels.py       All epochs of a PPO or A2C update in one call: gather, forward, loss, backward,
                            clipping, Adam
    policy_lane.py          The native lane of the actor-critic family: all epochs over a rollout in one
                            machine-code call
    policy_loss_kernels.py  Loss terms of a minibatch's rows and their gradients by the network's outputs, in double
                            precision
    unit_kernels.py         Kernels that are compiled once each and called by name from other kernels
    update_kernels.py       k sequential DQN updates in one call: both forwards, loss, backward, clipping, Adam,
                            target
    vector_kernels.py       Vector instructions for the native lane, written as LLVM IR: matrix tiles, transposes,
                            dot products
"""
