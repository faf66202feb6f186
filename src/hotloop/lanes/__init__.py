"""How an update executes: objectives, optimizer, and the eager, compiled and native lanes.

Files:
    choice.py            Which lane executes the updates
    compiled.py          The compiled lane: the eager lane's networks and losses, several updates fused into one
                         call of machine code
    compiling.py         From a function on tensors to machine code: traced once for fixed shapes, compiled by
                         TorchInductor, kept on disk
    eager.py             The plain lane: PyTorch, any objective, any module, any device
    graph_objective.py   The loss of PPO and A2C over graphs: a value for each part of the reward, a choice for each
                         node
    native/              The native lane: updates in machine code, one call for several
    nonfinite.py         When an update is not to be made because its numbers are not finite: what it was computed
                         from, and what came first
    objective.py         What one update computes, said once for all lanes; `q_objective`, `policy_objective`,
                         `graph_objective` and `sac_objective` say it
    optimizer.py         A module's parameters in one flat vector, with the moments that Adam keeps of their gradient
    policy_objective.py  The loss of PPO and A2C: clipped or plain policy gradient, value error and entropy, over
                         minibatches of a rollout
    q_objective.py       The loss of every DQN variant: r + discount * Q_target(s', argmax Q), scalar or
                         categorical, double or not
    sac_objective.py     The losses of SAC, TD3 and DDPG: critics towards a soft or smoothed target, an actor up its
                         critics, a temperature
    spec.py              What every lane offers, whatever it computes: a lane executes an objective's updates on
                         parameters it shares with an ordinary `nn.Module`
    traced.py            Updates as pure functions of flat vectors, for a compiler to trace
"""
