"""Networks over graphs of any size. Start at `network.py`.

Files:
    attention.py          Attention of each row over the messages that arrive at it: as torch operations, or as
                          machine code on a CPU
    attention_kernels.py  Attention along messages and its gradients, each as one call of machine code
    network.py            A policy and values of each graph: layers of attention along its edges, and to and from a
                          token of the whole graph
"""
