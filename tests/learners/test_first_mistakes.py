"""What people get wrong in their first hour, and the sentence that they read: it names what was given, why it is wrong
and what was expected."""

from __future__ import annotations

import re
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

import hotloop
from hotloop import PolicyLearner, QLearner
from hotloop.core.errors import ArgumentError, EnvError


class Net(nn.Module):
    """Of what a function of (features [B, 8], the module) answers."""

    def __init__(self, answer, outputs: int = 4) -> None:
        super().__init__()
        self.torso, self.head, self.critic = nn.Linear(3, 8), nn.Linear(8, outputs), nn.Linear(8, 1)
        self.answer = answer

    def forward(self, obs):
        return self.answer(torch.relu(self.torso(obs)), self)


def pair(x, net):
    return net.head(x), net.critic(x)


def q_values(x, net):
    return net.head(x)


def q_learner(**settings):
    return QLearner(Net(q_values), **settings)


def forgets_a_name(x, net):
    return net.head(forgotten)  # noqa: F821


def forgets_a_layer(x, net):
    return net.head2(x)


@pytest.mark.parametrize(
    ("answer", "cause", "words"),
    [
        (forgets_a_name, NameError, "NameError: name 'forgotten' is not defined"),
        (forgets_a_layer, AttributeError, "AttributeError: .* no attribute 'head2'"),
    ],
)
@pytest.mark.parametrize("shape", [(3,), (8, 3)])
def test_an_error_in_forward_is_told_at_the_first_call(answer, cause, words, shape):
    learner = QLearner(Net(answer))
    seen = rf"`obs` has shape {re.escape(str(shape))}", r"`batch.obs` has observations of shape \(3,\)"
    for call, what in zip(
        (lambda: learner.act(np.zeros(shape)), lambda: learner.update(transitions())), seen, strict=True
    ):
        with pytest.raises(ArgumentError, match=f"{what}, on which `network` fails: {words}") as caught:
            call()
        assert isinstance(caught.value.__cause__, cause)
        assert "\n" not in caught.value.message
        assert "obs=" not in caught.value.hint


def test_observations_that_fit_in_no_way_say_why_not_in_either():
    with pytest.raises(
        ArgumentError, match=r"neither as one observation \(.*2x7 and 3x8\)\) nor as several \(.*and 3x8"
    ):
        q_learner().act(np.zeros(7, np.float32))
    with pytest.raises(ArgumentError, match="2x7 and 3x8") as caught:
        q_learner().act(np.zeros((5, 7), np.float32))
    assert caught.value.hint == "`network` takes observations of shape (3,)"
    with pytest.raises(
        ArgumentError, match=r"`batch.obs` has observations of shape \(7,\), on which `network` fails: mat1"
    ):
        q_learner().update(transitions(obs=np.zeros((64, 7))))


CATEGORICAL = torch.distributions.Categorical
ANSWERS = {
    "a Q-network": (q_values, None, r"with \(2, 4\); expected are \(logits \[2, actions\], values"),
    "swapped": (
        lambda x, net: (net.critic(x), net.head(x)),
        None,
        r"with \(\(2, 1\), \(2, 4\)\); expected are \(logits",
    ),
    "a dict": (lambda x, net: {"logits": net.head(x)}, None, "with dict; expected are"),
    "a distribution": (
        lambda x, net: (CATEGORICAL(logits=net.head(x)), net.critic(x)),
        None,
        r"with \(Categorical, \(",
    ),
    "too few logits": (pair, spaces.Discrete(6), "answers with 4 logits; `action` is a choice of 6, which needs 6"),
    "too many means": (pair, (2,), "answers with 4 means; `action` has 2 numbers"),
    "one logit for each bit": (
        pair,
        spaces.MultiBinary(4),
        r"4 logits; `action` is 4 choices \(of 2, 2, 2, 2\), which needs 8",
    ),
}
HINTS = {
    "a Q-network": "QLearner",
    "swapped": "in this order",
    "a dict": "`return logits, value`",
    "a distribution": "not the distribution",
    "too many means": "standard deviations are a parameter",
    "one logit for each bit": "8 outputs",
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("shape", [(3,), (8, 3)])
def test_an_actor_critic_of_another_form_is_told_at_the_first_act_or_before(answer, shape):
    how, action, words = ANSWERS[answer]
    log_std = {"log_std": 0.0} if action == (2,) else {}
    with pytest.raises(ArgumentError, match=words) as caught:
        PolicyLearner(Net(how), action=action, **log_std).act(np.zeros(shape, np.float32))
    assert HINTS.get(answer, "") in caught.value.hint
    with pytest.raises(ArgumentError, match=words):
        PolicyLearner(Net(how), action=action, obs=(3,), **log_std)


def test_an_actor_critic_is_no_q_network():
    with pytest.raises(ArgumentError, match="answers 2 observations with a tuple; expected Q-values") as caught:
        QLearner(Net(pair)).act(np.zeros(3, np.float32))
    assert "PolicyLearner" in caught.value.hint


def test_bits_take_two_logits_each():
    policy = PolicyLearner(Net(pair, outputs=6), action=spaces.MultiBinary(3), batch_size=4)
    action, _ = policy.act(np.zeros((2, 3), np.float32))
    assert action.shape == (2, 3)
    assert set(action.reshape(-1).tolist()) <= {0, 1}


@pytest.mark.parametrize(("last", "held"), [(np.zeros((4, 3)), 4), (np.zeros(3), 1)], ids=["some envs", "one env"])
def test_the_observations_after_a_rollout_are_of_all_envs(last, held):
    policy, obs = PolicyLearner(Net(pair), batch_size=8), np.zeros((8, 3), np.float32)
    rollout = hotloop.Rollout(2, 8, obs=(3,), num_actions=4)
    while not rollout.full:
        action, note = policy.act(obs)
        rollout.add(obs, action, note, np.zeros(8), np.zeros(8, int), np.zeros(8, int), obs)  # flags as ints too
    with pytest.raises(ArgumentError, match=rf"`obs` holds {held} of 8 observations; expected is shape \(8, 3\)"):
        policy.update(rollout, last)
    assert policy.update(rollout, obs).updates == 8


def test_one_env_needs_no_axis_of_its_own():
    policy, obs = PolicyLearner(Net(pair), batch_size=4), np.zeros(3, np.float32)
    rollout = hotloop.Rollout(4, 1, obs=(3,), num_actions=4)
    while not rollout.full:
        action, (log_prob, value) = policy.act(obs)
        rollout.add(obs, action, (log_prob, value), 1.0, False, False, obs)
    assert policy.update(rollout, obs).updates == 4


def test_a_mask_has_the_name_that_it_has_elsewhere():
    obs, mask = np.zeros((2, 3), np.float32), [[False, True, False, False]] * 2
    q, policy = q_learner(), PolicyLearner(Net(pair))
    for how in ({"action_mask": mask}, {"mask": mask}):
        assert q.act(obs, **how).tolist() == [1, 1]
        assert q.act(obs, 1.0, **how).tolist() == [1, 1]
        assert policy.act(obs, **how)[0].tolist() == [1, 1]
    assert q.act(obs, 0.0, mask).tolist() == policy.act(obs, mask)[0].tolist() == [1, 1]
    for learner in (q, policy):
        with pytest.raises(ArgumentError, match="`action_mask` and `mask` are two names"):
            learner.act(obs, action_mask=mask, mask=mask)
        with pytest.raises(ArgumentError, match=r"`action_mask` has shape \(4,\); expected \(2, 4\)"):
            learner.act(obs, action_mask=mask[0])
        with pytest.raises(ArgumentError, match="`action_mask` allows no action"):
            learner.act(obs, action_mask=np.zeros((2, 4), bool))
        with pytest.raises(ArgumentError, match="`action_mask` is float64") as caught:
            learner.act(obs, action_mask=np.ones((2, 4)))
        assert caught.value.hint == "e.g. `action_mask.astype(bool)`"


class Masked(gymnasium.Env):
    """Three steps to the right; where it stands is forbidden as an action. Masks of another length on demand."""

    observation_space, action_space = spaces.Box(-9, 9, (3,), np.float32), spaces.Discrete(4)

    def __init__(self, width: int = 4, tells: bool = True) -> None:
        self.width, self.tells, self.at = width, tells, 0

    def action_masks(self):
        return np.arange(self.width) != self.at

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self._seen()

    def step(self, action):
        assert action != self.at
        self.at += 1
        obs, info = self._seen()
        return obs, 1.0, self.at == 3, False, info

    def _seen(self):
        return np.full(3, self.at, np.float32), {"action_mask": self.action_masks()} if self.tells else {}


@pytest.mark.parametrize(
    ("env", "how"),
    [(Masked, {}), (Masked, {"tells": False}), (f"{__file__}:Masked", {"workers": 1})],
    ids=["in info", "by its method", "in workers"],
)
def test_masks_of_what_the_actions_led_to(env, how):
    envs = hotloop.vector(env, 2, **how)
    learner, replay = q_learner(), hotloop.Replay(99, (3,), num_envs=2, num_actions=4)
    obs, info = envs.reset()
    for _ in range(9):
        action = learner.act(obs, 0.5, info["action_mask"])
        next_obs, reward, terminated, truncated, info = envs.step(action)
        led_to = hotloop.final_obs(next_obs, info)
        allowed = hotloop.final_mask(info)
        assert (allowed == (np.arange(4) != led_to[:, :1])).all()
        assert (info["action_mask"] == (np.arange(4) != next_obs[:, :1])).all()
        replay.add(obs, action, reward, led_to, terminated, truncated, next_action_mask=allowed)
        obs = next_obs
    batch = replay.sample(16)
    assert (batch.next_action_mask == (np.arange(4) != batch.next_obs[:, :1])).all()
    assert learner.update(batch).loss > 0
    envs.close()


def test_masks_of_gymnasiums_own_vector_envs():
    same_step = gymnasium.vector.AutoresetMode.SAME_STEP
    envs = gymnasium.vector.SyncVectorEnv([Masked] * 2, autoreset_mode=same_step)
    _, info = envs.reset()
    assert hotloop.final_mask(info).tolist() == [[False, True, True, True]] * 2
    for at in (1, 2, 3):
        *_, info = envs.step([3 if at < 3 else 1] * 2)
        assert hotloop.final_mask(info).tolist() == [[column != at for column in range(4)]] * 2


def test_masks_that_are_not_there_are_missed():
    with pytest.raises(ArgumentError, match="`info` has no `action_mask`"):
        hotloop.final_mask({})
    with pytest.raises(ArgumentError, match="`info` is a ndarray"):
        hotloop.final_mask(np.zeros((2, 3)))
    end = {"action_mask": np.ones((1, 2), bool), "final_info": {}, "_final_info": np.array([True])}
    with pytest.raises(ArgumentError, match="no `action_mask` of an episode that ended"):
        hotloop.final_mask(end)


@pytest.mark.parametrize("width", [3, 5])
def test_a_mask_of_another_length_is_refused(width):
    with pytest.raises(EnvError, match=rf"env 0 returned `action_mask` bool\({width},\) where bool\(4,\) was expected"):
        hotloop.vector(Masked, 2, width=width)


def test_envs_that_cannot_be_made_or_stepped_speak_of_no_command_line():
    with pytest.raises(EnvError, match="unexpected keyword argument 'lmit'") as caught:
        hotloop.vector(Masked, lmit=3)
    envs = hotloop.vector(Masked, 1)
    envs.reset()
    with pytest.raises(EnvError, match="raised AssertionError in `step`") as second:
        envs.step([0])
    for error in (caught.value, second.value):
        assert "--" not in error.hint
        assert "`options`" not in error.hint


@pytest.mark.parametrize("env", ["cartpole", "snake", "CartPole-v1"])
def test_arrays_that_envs_handed_out_are_left_alone(env):
    envs = hotloop.vector(env, 3, workers=1 if env == "CartPole-v1" else 0)
    _obs, info = envs.reset()
    kept = []
    for _ in range(30):
        allowed = info.get("action_mask", np.ones((3, 2), bool))
        answer = envs.step(np.array([np.flatnonzero(row)[0] for row in allowed]))
        info = answer[4]
        kept += [(array, array.copy()) for array in (*answer[:4], hotloop.final_obs(answer[0], info))]
    assert all(np.array_equal(array, copy) for array, copy in kept)
    envs.close()


def test_what_was_seen_and_what_was_said_are_two_arguments():
    obs, info = np.zeros((2, 3)), {"final_obs": np.array([None, None]), "_final_obs": np.zeros(2, bool)}
    for wrong in ((info, obs), ({}, obs), (info, {"at": obs}), ({}, {"at": obs})):
        with pytest.raises(ArgumentError, match="`obs` and `info` are the wrong way round"):
            hotloop.final_obs(*wrong)
    assert hotloop.final_obs({"at": obs}, {})["at"] is obs


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: hotloop.Replay(10, (3,), action=2), "give a space, a shape, or `num_actions=2`"),
        (lambda: hotloop.Rollout(4, 2, (3,), action=4), "give a space, a shape, or `num_actions=4`"),
        (lambda: PolicyLearner(Net(pair), action=4), "`(4,)` for floats; one choice needs no `action=`"),
    ],
)
def test_a_number_is_no_action_space(make, hint):
    with pytest.raises(ArgumentError, match="`action` is [24]; expected a space or a shape") as caught:
        make()
    assert hint in caught.value.hint


def test_a_rollout_refuses_an_action_that_its_mask_forbids():
    rollout = hotloop.Rollout(2, 2, obs=(1,), num_actions=3)
    step = {"obs": [[0.0]] * 2, "note": ([0.0] * 2, [0.0] * 2), "reward": [0.0] * 2, "final_obs": [[0.0]] * 2}
    step |= {
        "terminated": [False] * 2,
        "truncated": [False] * 2,
        "action_mask": [[True, True, True], [True, False, True]],
    }
    with pytest.raises(ArgumentError, match="`action` of env 1 is 1, which its `action_mask` forbids"):
        rollout.add(action=[0, 1], **step)
    assert len(rollout) == 0
    rollout.add(action=[0, 1], **step, valid=[True, False])  # the env ignored it
    rollout.add(action=[1, 2], **step)
    several = hotloop.Rollout(1, 1, obs=(1,), action=spaces.MultiDiscrete([2, 3]))
    mask = [True, False, True, True, False]
    with pytest.raises(ArgumentError, match=r"`action` of env 0 is \[0, 2\], which its `action_mask` forbids"):
        several.add([0.0], [0, 2], (0.0, 0.0), 0.0, False, False, [0.0], action_mask=mask)
    several.add([0.0], [0, 1], (0.0, 0.0), 0.0, False, False, [0.0], action_mask=mask)


def transitions(**other):
    zeros = np.zeros(64, np.float32)
    fields = {"obs": np.zeros((64, 3), np.float32), "next_obs": np.zeros((64, 3), np.float32), "reward": zeros}
    return SimpleNamespace(**fields | {"action": np.zeros(64, np.int64), "discount": zeros + 0.9} | other)


@pytest.mark.parametrize(
    ("batch", "words", "hint"),
    [
        (transitions(discount=np.ones(64, bool)), "`batch.discount` is bool", "gamma"),
        (transitions(discount=[True] * 64), "`batch.discount` is bool", "gamma"),
        (transitions(discount=torch.ones(64, dtype=torch.bool)), "`batch.discount` is bool", "gamma"),
        (transitions(discount=np.full(64, 99.0)), "`batch.discount` holds 99.0; expected 0 to 1", "gamma"),
        (transitions(discount=np.full(64, np.nan, np.float32)), "`batch.discount` holds nan; expected 0 to 1", ""),
        (
            transitions(reward=np.zeros((64, 1), np.float32)),
            r"`batch.reward` has shape \(64, 1\); expected \(64,\), where `batch.obs` has shape \(64, 3\)",
            "reshape",
        ),
        (
            transitions(action=np.zeros(64)),
            "`batch.action` is float64; it is kept as int64",
            "`batch.action.astype(int)`",
        ),
        (transitions(action=torch.zeros(64)), "`batch.action` is float32", "`batch.action.long()`"),
        (hotloop.Replay(9, (3,)), "`batch` is of type Replay; expected obs, action, reward", "replay.sample(64)"),
        ((1, 2, 3), "`batch` is of type tuple; expected obs, action, reward, discount, next_obs", "Replay.sample"),
        ({"rewards": 1}, "`batch` is of type SimpleNamespace|`batch.reward` is missing", ""),
    ],
)
def test_a_batch_that_is_none_is_told_so(batch, words, hint):
    learner = q_learner()
    with pytest.raises(ArgumentError, match=words) as caught:
        learner.update(batch)
    assert hint in caught.value.hint
    assert learner.updates == 0


def test_a_batch_may_be_a_dict_and_batches_of_one_are_batches():
    learner, other = (QLearner(made(Net(q_values))) for _ in range(2))
    assert learner.update(vars(transitions())).loss == other.update(transitions()).loss
    ones = {name: field[:, None] for name, field in vars(transitions()).items()}
    assert learner.update(ones).td_error.shape == (64, 1)
    with pytest.raises(ArgumentError, match="`batch.next_obs` is missing"):
        learner.update({name: field for name, field in vars(transitions()).items() if name != "next_obs"})


def made(module: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(0.1)
    return module


RESET = (np.zeros(3, np.float32), {})


@pytest.mark.parametrize(
    ("call", "words", "hint"),
    [
        (lambda: q_learner().act(RESET), "`obs` is a tuple of an observation", "`obs, info = env.reset()`"),
        (lambda: added(obs=RESET), "`obs` is a tuple of an observation", "`obs, info = env.reset()`"),
        (
            lambda: hotloop.Replay(9, {"at": (3,)}).add(({"at": RESET[0]}, {}), 0, 0.0, {}, False, False),
            "`obs` is of type tuple; expected a dict",
            "`obs, info = env.reset()`",
        ),
        (lambda: hotloop.Replay(1e6, (3,)), "`buffer_size` is 1000000.0; expected a whole", "`buffer_size=int(1e6)`"),
        (lambda: hotloop.Replay(2.5, (3,)), "`buffer_size` is 2.5; expected a whole", "e.g. 1"),
        (lambda: added(obs=np.zeros((8, 3))), r"`obs` has shape \(8, 3\)", "`num_envs=8`"),
        (lambda: added(obs=np.zeros(4)), r"`obs` has shape \(4,\); expected \(3,\), or \(1, 3\)", "constructor"),
        (lambda: added(action=np.zeros(1)), "`action` is float64", "`action.astype(int)`"),
        (lambda: added(action=0.0), "`action` is float64", "`int(action)`"),
        (lambda: added(terminated=1.0), "`terminated` is float64", "`bool(terminated)`"),
    ],
)
def test_the_hint_says_what_to_write(call, words, hint):
    with pytest.raises(ArgumentError, match=words) as caught:
        call()
    assert hint in caught.value.hint
    assert "num_envs" not in caught.value.hint or "num_envs" in hint


def added(**wrong):
    right = {"obs": RESET[0], "action": 0, "reward": 0.0, "next_obs": RESET[0], "terminated": False, "truncated": False}
    hotloop.Replay(9, (3,)).add(**right | wrong)


def test_an_optimizer_is_named_by_its_type():
    net = Net(q_values)
    with pytest.raises(ArgumentError, match="`learning_rate` is of type Adam; expected a number") as caught:
        QLearner(net, torch.optim.Adam(net.parameters()))
    assert len(str(caught.value)) < 120


def test_observations_of_another_width_are_told_of_each():
    learner = q_learner(obs=(3,))
    with pytest.raises(ArgumentError, match=r"`obs` has shape \(8, 4\), \(4,\) of each; expected \(3,\) of each"):
        learner.act(np.zeros((8, 4), np.float32))
    with pytest.raises(ArgumentError, match=r"`obs` has observations of shape \(4,\); expected \(3,\)"):
        learner.act(np.zeros(4, np.float32))


class Image(nn.Module):
    """Without a linear layer that would tell how wide a vector is."""

    def __init__(self, answer) -> None:
        super().__init__()
        self.convolution, self.answer = nn.Conv2d(1, 4, 3), answer

    def forward(self, obs):
        return self.answer(self, obs)


def test_both_readings_of_an_image_are_told_where_neither_works():
    image = np.zeros((1, 6, 6), np.float32)
    broken = QLearner(Image(lambda net, obs: net.convolution(missing).mean((2, 3))))  # noqa: F821
    with pytest.raises(
        ArgumentError, match=r"`obs` has shape \(1, 6, 6\), on which `network` fails: NameError: name 'm"
    ):
        broken.act(image)
    flat = QLearner(Image(lambda net, obs: net.convolution(obs)))
    with pytest.raises(ArgumentError, match=r"\(1, 6, 6\): `network` answers 2 observations with shape \(2, 4, 4, 4\)"):
        flat.act(image)
    with pytest.raises(ArgumentError, match=r"neither as one observation \(.* nor as several \(.*") as caught:
        flat.act(np.zeros((2, 6, 6), np.float32))
    assert isinstance(caught.value.__cause__, RuntimeError)
    right = QLearner(Image(lambda net, obs: net.convolution(obs).mean((2, 3))))
    assert right.act(image) in range(4)
