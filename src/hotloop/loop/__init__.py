"""The two training loops, their parts, and agents made of runs. Start with `off_policy.py`.

Files:
    agent_files.py       Agents from files: the best weights of a run, or one file that an agent was saved to
    agents.py            Trained agents that act: greedy Q-networks, actors, and actors over graphs
    cadence.py           When something is due
    collector.py         Acts in the envs and keeps account of episodes
    collector_kernels.py Episode accounting for N envs in one call, with a look at what they answered: two calls would
                         cost twice as much
    contract.py          What a run shows of itself while it goes on: its rows, and who watches
    evaluate.py          How good the agent is: greedy episodes on separate envs, and the best weights so far
    failure.py           What a run does when numbers are not finite: keep the update that failed, then go back once, or
                         stop
    iterate.py           A run in its caller's hands: row by row, or to its end
    journal.py           What a run writes while it trains: event rows, checkpoints, and the final result
    machine.py           The process a run trains in: its threads, its treatment of tiny numbers, its devices
    metrics.py           What a run measured since its last log row, read from the device once per row
    off_policy.py        The training loop of those that learn from replay: all of it, on one screen
    on_policy.py         The actor-critic family's training loop (PPO, A2C): all of it, on one screen
    rehearsal.py         The first run of its kind compiles side by side: the learner's kernels here, those of envs and
                         replay in a process
    rerun_failure.py     An update that failed, repeated in plain PyTorch from what its run kept; no code of the run's
                         is executed
    resuming.py          What a run's newest checkpoint says of itself: looked at before anything is built for it, and
                         held against what the session that is to continue it would have saved itself
    running.py           What every training loop has around it: start, log rows, evaluations, checkpoints, signals, the
                         end
    sac_agent.py         A trained actor with critics of its own: SAC's, TD3's or DDPG's
    session.py           Everything one run consists of, built once; and its whole state, for checkpoints and the digest
    sizes.py             How large a network and its run would be, known before anything of it is allocated
    spec_data.py         What an agent saw and did, as data that a checkpoint keeps and a loaded agent is built from
    watchdog.py          Ends a run that was asked to stop and does not, because its env hangs; says where
"""
