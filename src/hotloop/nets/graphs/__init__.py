"""Networks over graphs of any size. Start at `network.py`."""
