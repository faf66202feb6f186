"""Networks wired like any directed acyclic graph. Start at `network.py`.

Files:
    convert.py           From NetworkX and from JSON files to a `Topology`, and back
    fused.py             The whole graph as one operation of autograd, on a CPU
    generators.py        Graphs to wire networks by: small worlds, dense layers, and dense layers turned into small
                         worlds
    graph.py             A directed acyclic graph, checked and put into the order in which its nodes can be computed
    network.py           A network wired like any directed acyclic graph: one weight per edge, one bias per node
                         that is no input
    topology_kernels.py  Forward and backward over a whole graph, each as one call of machine code
"""
