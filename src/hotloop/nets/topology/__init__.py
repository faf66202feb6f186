"""Networks wired like any directed acyclic graph. Start at `network.py`."""
