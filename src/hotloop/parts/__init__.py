"""Parts for loops of your own: the same that our loops are made of, with a door for anybody's values and modules.

Files:
    advantage.py       Generalised advantage estimation for anybody's loop
    batch.py           What `Replay.sample` hands out
    inputs.py          What learners are handed: observations of any shape, arrays of a batch, numbers of a constructor
    learner.py         What learners of users' modules share: observations, the choice of a lane, memory, state
    own_network.py     A user's module as lanes take it: checked, its parameters in order, its memory shared and watched
    policy_inputs.py   What a policy learner is handed: an action space, standard deviations, a full rollout
    policy_learner.py  PPO on a user's actor-critic
    q_learner.py       DQN on a user's Q-network
    replay.py          Replay for anybody's loop: transitions in, batches out
    rollout.py         Rollouts for anybody's loop: T steps of N envs, with what the policy thought of them
    sac_learner.py     SAC, TD3 and DDPG for anybody's loop
    specs.py           Shapes and Gymnasium spaces, as users give them, read into specs
    values.py          What users hand to a part, read into arrays: kept exactly or refused, with one sentence that
                       names the argument
    values_kernels.py  One look at every number that is handed in: in numpy it costs several times the storing of a
                       small row
    vector_env.py      Envs for anybody's loop: any env, several at once, as a Gymnasium VectorEnv
"""

from hotloop.parts.advantage import gae as gae
from hotloop.parts.batch import Batch as Batch
from hotloop.parts.policy_learner import PolicyLearner as PolicyLearner
from hotloop.parts.q_learner import QLearner as QLearner
from hotloop.parts.replay import Replay as Replay
from hotloop.parts.rollout import Note as Note
from hotloop.parts.rollout import Rollout as Rollout
from hotloop.parts.sac_learner import SACLearner as SACLearner
from hotloop.parts.vector_env import final_mask as final_mask
from hotloop.parts.vector_env import final_obs as final_obs
from hotloop.parts.vector_env import vector as vector

__all__ = [
    "Batch",
    "Note",
    "PolicyLearner",
    "QLearner",
    "Replay",
    "Rollout",
    "SACLearner",
    "final_mask",
    "final_obs",
    "gae",
    "vector",
]
