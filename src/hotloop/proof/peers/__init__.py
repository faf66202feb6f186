"""The same work in other libraries.

`dqn_*.py` are scripts that run alone, by path, in whatever environment has the library; each prints one JSON line.
`replay_*.py` are imported: replays are small enough to be timed side by side in one process.
"""
