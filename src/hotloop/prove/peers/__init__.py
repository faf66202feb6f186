"""The same work in other libraries.

`dqn_*.py` are scripts that run alone, by path, in whatever environment has the library; each prints one JSON line.
`replay_calls.py` is imported: replays are small enough to be timed side by side in one process.
"""
