"""Verbs of this workload: a function that takes the words after it and returns an exit code."""

import argparse


def best(words: list[str]) -> int:
    """Say what the best return is."""
    parser = argparse.ArgumentParser("hotloop corridor best", description=best.__doc__)
    parser.add_argument("--length", type=int, default=10)
    print(f"{1 - 0.01 * (parser.parse_args(words).length - 1):.2f}")
    return 0
