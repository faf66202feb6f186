"""Parts for loops of your own: the same that our loops are made of, with a door for anybody's values and modules.

Files:
    arrays.py          What a learner is handed, read into arrays: kept exactly or refused with one sentence
    own_network.py     A user's module as lanes take it: checked, its parameters in order, its memory shared and watched
    policy_learner.py  PPO on a user's actor-critic
    q_learner.py       DQN on a user's Q-network
"""

from hotloop.parts.policy_learner import Note as Note
from hotloop.parts.policy_learner import PolicyLearner as PolicyLearner
from hotloop.parts.q_learner import QLearner as QLearner

__all__ = ["Note", "PolicyLearner", "QLearner"]
