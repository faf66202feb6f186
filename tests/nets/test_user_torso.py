"""Torsos of the user's own: the contract, and what says that one does not keep to it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from hotloop.core.errors import SettingsError
from hotloop.core.types import ArraySpec
from hotloop.lanes.choice import UPDATES_THAT_REPAY_COMPILING, untraceable_torso
from hotloop.maths.distributions import ActionLayout
from hotloop.nets.actor_critic import actor_critic_layout, build_actor_critic
from hotloop.nets.build import build_q_network, mlp_layout, observation_text
from hotloop.nets.user_torso import UserTorso
from hotloop.presets.network_settings import ActorCriticSettings, NetworkSettings

SOURCE = Path(__file__).with_name("planted_torsos.py")
VECTOR = ArraySpec((4,))


def torso(name: str) -> str:
    return f"{SOURCE}:{name}"


def made(name: str, spec=VECTOR, seed: int = 1, **settings):
    return build_q_network(NetworkSettings(torso=torso(name), **settings), spec, 3, seed)


@pytest.mark.parametrize("name", ["Plain", "Lazy", "WithConstants", "Branching"])
@pytest.mark.parametrize(("dueling", "noisy", "atoms"), [(False, False, 1), (True, True, 5)])
def test_the_heads_stand_on_its_features_and_everything_learns(name, dueling, noisy, atoms):
    network = made(name, dueling=dueling, noisy=noisy, atoms=atoms)
    assert isinstance(network.torso, UserTorso)
    output = network(torch.rand(5, 4))
    assert output.shape == ((5, 3) if atoms == 1 else (5, 3, 5))
    output.square().sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_the_same_seed_gives_the_same_network_and_leaves_torchs_generator_alone():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    for name in ("Plain", "Lazy"):
        one, other, third = (made(name, seed=seed) for seed in (5, 5, 6))
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(a, b)
        assert not torch.equal(next(one.parameters()), next(third.parameters()))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_bytes_come_scaled_and_parts_by_name():
    image = ArraySpec((2, 2, 1), np.dtype(np.uint8))
    network = made("Sums", {"image": image, "speed": ArraySpec((3,))})
    obs = {"image": torch.full((2, 2, 2, 1), 255, dtype=torch.uint8), "speed": torch.ones(2, 3)}
    assert_close(network.torso(obs), torch.tensor([[4.0, 3.0]] * 2))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Absent", "has no nn.Module called `Absent`"),
        ("not_a_module", "has no nn.Module called"),
        ("Dropping", "two answers to the same observations"),
        ("Normalizing", "changes its buffers"),
        ("RandomBuffer", "buffer `noise` .* drawn at random"),
        ("Frozen", "parameter `linear.weight` .* requires_grad=False"),
        ("OneNumber", r"gave torch.float32 of shape \(3,\) for 3 observations"),
        ("Breaking", r"failed on observations of shape \(3, 4\): RuntimeError: .* line 8\d\)"),
        ("NoShape", r"could not be made for observations of shape \(4,\): TypeError"),
    ],
)
def test_what_does_not_keep_to_the_contract_is_one_sentence(name, words):
    with pytest.raises(SettingsError, match=words) as caught:
        made(name)
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_a_file_that_is_not_there_or_cannot_be_run_is_named(tmp_path):
    with pytest.raises(SettingsError, match="there is no file"):
        build_q_network(NetworkSettings(torso=f"{tmp_path}/absent.py:Net"), VECTOR, 3, 0)
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(SettingsError, match=r"cannot be loaded: ModuleNotFoundError: .* \(broken.py, line 1\)"):
        build_q_network(NetworkSettings(torso=f"{tmp_path}/broken.py:Net"), VECTOR, 3, 0)


@pytest.mark.parametrize("shared", [False, True])
def test_an_actor_critic_leaves_its_weights_as_the_constructor_made_them(shared):
    settings = ActorCriticSettings(torso=torso("Ones"), shared=shared)
    network = build_actor_critic(settings, VECTOR, ActionLayout((3,), 0, False), seed=0)
    torsos = [module for module in network.modules() if isinstance(module, UserTorso)]
    assert len(torsos) == (1 if shared else 2)
    for one in torsos:
        assert one.module.linear.weight.eq(1).all()
    assert network.policy_head.bias.eq(0).all()
    assert actor_critic_layout(settings, VECTOR) is None


def test_no_machine_code_is_written_for_it_and_a_compiler_may_or_may_not_look_into_it():
    settings = NetworkSettings(torso=torso("Plain"))
    assert mlp_layout(settings, VECTOR, 3) is None
    assert made("Plain").torso.untraceable() == ""
    assert "cannot look into" in untraceable_torso(made("Branching"), UPDATES_THAT_REPAY_COMPILING)
    assert untraceable_torso(made("Branching"), UPDATES_THAT_REPAY_COMPILING - 1) == ""  # not worth asking
    assert "`network.hidden` and `network.activation` are not used" in observation_text(settings, VECTOR)
