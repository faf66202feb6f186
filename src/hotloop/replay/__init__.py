"""What is learned from: replay (ring, n-step windows, samplers) and rollouts.

Files:
    buffer.py          Replay: n-step window, ring and sampler behind one small door
    layout.py          How a transition lies in memory: one row, so that drawing it touches one or two cache lines
                       instead of five arrays
    memory.py          Replay is the largest thing a run allocates: its size is known beforehand, and refused where it
                       cannot fit
    n_step.py          n-step transitions: rewards summed over up to n steps of one env before the row is stored
    n_step_kernels.py  Machine code of the n-step window
    replay.py          Replay for anybody's loop: transitions in, batches out
    rollout.py         Rollouts for anybody's loop: T steps of N envs, with what the policy thought of them
    rollout_buffer.py  The slab that one on-policy iteration fills
    rollout_kernels.py One env step of N envs into a rollout, in one call
    sampler_kernels.py Machine code of the samplers
    samplers.py        Which transitions are drawn: uniformly, the newest too, or by priority through a sum tree
    segments.py        The ring in segments, for checkpoints: which stretches of rows have changed since they were saved
    storage.py         The ring of transitions, and the arrays that batches are gathered into
    storage_kernels.py Machine code of the ring: write rows, gather rows
"""
