"""DDPG as a project of several files is laid out: a package, yaml settings, `python train.py` or `python -m lander`."""

from lander.train import main

if __name__ == "__main__":
    main()
