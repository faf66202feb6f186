"""The plain lane against an independent PyTorch program: modules, torch.optim.Adam, clip_grad_norm_."""

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional

from hotloop.core.types import ArraySpec, Batch
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.q_objective import QObjective, QSpec
from hotloop.nets.build import QNetwork, build_q_network
from hotloop.nets.modules import resample_noise
from hotloop.presets.network_settings import NetworkSettings
from tests.oracles import categorical_oracle

OBS, ACTIONS, ROWS = 4, 3, 16
V_MIN, V_MAX = -2.0, 6.0
BASE = {
    "loss": "huber",
    "double": False,
    "atoms": 1,
    "v_min": V_MIN,
    "v_max": V_MAX,
    "noisy": False,
    "max_grad_norm": 0.0,
    "accumulate": 1,
    "beta1": 0.9,
    "beta2": 0.999,
    "epsilon": 1e-8,
    "target_tau": 1.0,
    "target_every": 5,
}
VARIANTS = {
    "dqn": {},
    "double": {"double": True},
    "dueling": {"dueling": True},
    "mse": {"loss": "mse"},
    "clipping": {"max_grad_norm": 0.05},
    "weights": {"weights": True},
    "masks": {"masks": True},
    "accumulate": {"accumulate": 2, "weights": True},
    "polyak": {"target_tau": 0.1, "target_every": 1},
    "the loop moves the target": {"target_every": 0},
    "c51": {"atoms": 11},
    "double dueling c51 with masks": {"atoms": 11, "double": True, "dueling": True, "masks": True, "weights": True},
    "noisy": {"noisy": True},
    "everything": {
        "double": True,
        "dueling": True,
        "noisy": True,
        "max_grad_norm": 0.5,
        "weights": True,
        "masks": True,
        "accumulate": 4,
        "target_tau": 0.3,
        "target_every": 3,
    },
}


def parts_of(variant: str) -> tuple[QSpec, QNetwork, dict]:
    data = {"dueling": False, "weights": False, "masks": False} | VARIANTS[variant]
    dueling = data.pop("dueling")
    used = {"weights": data.pop("weights"), "masks": data.pop("masks")}
    spec = QSpec(**(BASE | data))
    settings = NetworkSettings(hidden=(16, 16), dueling=dueling, noisy=spec.noisy, atoms=spec.atoms)
    return spec, build_q_network(settings, ArraySpec((OBS,)), ACTIONS, seed=3), used


def batches_of(k: int, seed: int, weights: bool = False, masks: bool = False, rows: int = ROWS) -> Batch:
    draw = np.random.default_rng(seed)
    shape = (k, rows)
    mask = draw.random((*shape, ACTIONS)) < 0.6
    mask[..., 0] |= ~mask.any(-1)
    return Batch(
        obs=draw.standard_normal((*shape, OBS)).astype(np.float32),
        action=draw.integers(0, ACTIONS, shape),
        reward=draw.standard_normal(shape).astype(np.float32),
        discount=(0.9 * (draw.random(shape) < 0.8)).astype(np.float32),
        next_obs=draw.standard_normal((*shape, OBS)).astype(np.float32),
        weight=(draw.random(shape) if weights else np.ones(shape)).astype(np.float32),
        index=np.zeros(shape, np.int64),
        next_action_mask=mask if masks else None,
    )


class PlainProgram:
    """The update as a tutorial would write it, one row at a time where that is plainest."""

    def __init__(self, spec: QSpec, network: QNetwork, seed: int) -> None:
        self.spec = spec
        self.online, self.target = copy.deepcopy(network), copy.deepcopy(network)
        self.optimizer = torch.optim.Adam(self.online.parameters(), betas=(spec.beta1, spec.beta2), eps=spec.epsilon)
        self.generator = torch.Generator().manual_seed(seed)
        self.count = 0

    def update(self, batches: Batch, j: int, lr: float) -> tuple[float, list[float], float, float]:
        spec = self.spec
        self.count += 1
        self.optimizer.param_groups[0]["lr"] = lr
        if spec.noisy:
            resample_noise(self.online, self.generator)
            resample_noise(self.target, self.generator)
        self.optimizer.zero_grad()
        row_losses, errors, q = self.rows(batches, j)
        loss = (torch.from_numpy(batches.weight[j]) * row_losses).mean()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.online.parameters(), spec.max_grad_norm or float("inf"))
        self.optimizer.step()
        if spec.target_every and self.count % spec.target_every == 0:
            with torch.no_grad():
                for old, new in zip(self.target.parameters(), self.online.parameters(), strict=True):
                    old.copy_(spec.target_tau * new + (1 - spec.target_tau) * old)
        return loss.item(), errors, q, norm.item()

    def rows(self, batches: Batch, j: int) -> tuple[torch.Tensor, list[float], float]:
        spec = self.spec
        rows = range(batches.reward.shape[1])
        output, next_obs = self.online(torch.from_numpy(batches.obs[j])), torch.from_numpy(batches.next_obs[j])
        with torch.no_grad():
            chooser, valuer = (self.online if spec.double else self.target)(next_obs), self.target(next_obs)
        mask = np.ones((len(rows), ACTIONS), bool) if batches.next_action_mask is None else batches.next_action_mask[j]
        losses, errors, values = [], [], []
        for i in rows:
            taken, reward, discount = output[i, batches.action[j, i]], batches.reward[j, i], batches.discount[j, i]
            best = max(np.flatnonzero(mask[i]), key=lambda a, i=i: self.worth(chooser[i, a]))
            if spec.atoms == 1:
                y = torch.tensor(float(reward) + float(discount) * valuer[i, best].item())
                losses.append((functional.smooth_l1_loss if spec.loss == "huber" else functional.mse_loss)(taken, y))
                errors.append(abs(y.item() - taken.item()))
            else:
                probability = valuer[i, best].softmax(-1).tolist()
                target = categorical_oracle.project(
                    float(reward), float(discount), probability, V_MIN, V_MAX, spec.atoms
                )
                losses.append(functional.cross_entropy(taken, torch.tensor(target)))
                errors.append(losses[-1].item())
            values.append(self.worth(taken))
        return torch.stack(losses), errors, float(np.mean(values))

    def worth(self, output: torch.Tensor) -> float:
        if self.spec.atoms == 1:
            return output.item()
        return categorical_oracle.expected(output.softmax(-1).tolist(), V_MIN, V_MAX)

    def flat(self, network: QNetwork) -> np.ndarray:
        return torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()]).numpy()


@pytest.mark.parametrize("variant", VARIANTS)
def test_twenty_updates_equal_a_plain_pytorch_program(variant):
    spec, network, used = parts_of(variant)
    plain = PlainProgram(spec, network, seed=5)
    lane = EagerLane(QObjective(spec), network, "cpu", seed=5)
    made = 0
    for k in (1, 7, 12):
        batches, lr = batches_of(k, seed=made, **used), np.linspace(1e-3, 5e-4, k)
        stats = lane.update(batches, lr, made)
        made += k
        for j in range(k):
            loss, errors, q, norm = plain.update(batches, j, float(lr[j]))
            assert stats.scalars[:, j].tolist() == pytest.approx([loss, q, norm], rel=2e-4, abs=2e-5)
            np.testing.assert_allclose(stats.td_error[j].numpy(), errors, rtol=2e-4, atol=5e-5)
    np.testing.assert_allclose(lane.parameters(), plain.flat(plain.online), rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(lane.targets["online"].values.numpy(), plain.flat(plain.target), rtol=2e-4, atol=2e-5)
    assert lane.groups["online"].flat.is_attached()
    assert lane.targets["online"].is_attached()


def lane_of(variant: str) -> EagerLane:
    spec, network, _ = parts_of(variant)
    return EagerLane(QObjective(spec), network, "cpu", seed=9)


def part(batches: Batch, j: int) -> Batch:
    names = ("obs", "action", "reward", "discount", "next_obs", "weight", "index", "next_action_mask")
    values = {name: getattr(batches, name) for name in names}
    return Batch(**{name: None if value is None else value[j : j + 1] for name, value in values.items()})


def assert_same_state(one: dict, other: dict) -> None:
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("variant", ["dqn", "c51", "everything", "polyak"])
def test_k_updates_in_one_call_equal_k_calls_of_one(variant):
    together, apart = lane_of(variant), lane_of(variant)
    used = parts_of(variant)[2]
    batches, lr = batches_of(8, seed=0, **used), np.linspace(1e-3, 1e-4, 8)
    stats = together.update(batches, lr, 3)
    singles = [apart.update(part(batches, j), lr[j : j + 1], 3 + j) for j in range(8)]
    assert_same_state(together.state(), apart.state())
    assert torch.equal(stats.scalars, torch.cat([single.scalars for single in singles], dim=1))
    assert torch.equal(stats.td_error, torch.cat([single.td_error for single in singles]))
    assert stats.scalars.shape == (3, 8)
    assert stats.td_error.shape == (8, ROWS)


def test_the_target_moves_by_the_count_of_all_updates_not_of_a_call():
    lane = lane_of("dqn")  # every 5
    start = lane.targets["online"].values.clone()
    for first in range(4):
        lane.update(batches_of(1, seed=first), np.full(1, 1e-3), first)
    assert torch.equal(lane.targets["online"].values, start)
    lane.update(batches_of(1, seed=4), np.full(1, 1e-3), 4)
    assert torch.equal(lane.targets["online"].values, lane.groups["online"].flat.values)
    fifth = lane.targets["online"].values.clone()
    lane.update(batches_of(4, seed=5), np.full(4, 1e-3), 5)
    assert torch.equal(lane.targets["online"].values, fifth)


def test_counts_far_beyond_small_integers_still_move_the_target():
    lane = lane_of("dqn")
    lane.update(batches_of(1, seed=0), np.full(1, 1e-3), 5 * 2**53 - 1)
    assert torch.equal(lane.targets["online"].values, lane.groups["online"].flat.values)
    assert torch.isfinite(lane.groups["online"].flat.values).all()


@pytest.mark.parametrize("variant", ["dqn", "everything", "c51"])
def test_a_restored_lane_continues_bit_by_bit(variant):
    used = parts_of(variant)[2]
    one, other = lane_of(variant), lane_of(variant)
    one.update(batches_of(6, seed=0, **used), np.full(6, 1e-3), 0)
    saved = one.state()
    kept = {name: value.copy() for name, value in saved.items()}
    other.load_state(saved)
    for lane in (one, other):
        lane.update(batches_of(6, seed=1, **used), np.full(6, 1e-3), 6)
    assert_same_state(one.state(), other.state())
    assert_same_state(saved, kept)  # a state is a copy: later updates leave it alone
    obs = batches_of(1, seed=2).obs[0]
    np.testing.assert_array_equal(one.infer(obs, None, True)[0], other.infer(obs, None, True)[0])


def test_no_update_reads_from_the_device(monkeypatch):
    """Each read would wait for the device's queue; on a CPU it only counts."""
    lanes = {variant: lane_of(variant) for variant in ("dqn", "c51", "everything", "clipping")}
    reads: list[str] = []

    def counted(name):
        original = getattr(torch.Tensor, name)

        def method(self, *arguments, **options):
            reads.append(name)
            return original(self, *arguments, **options)

        return method

    for name in (
        "item",
        "cpu",
        "numpy",
        "tolist",
        "__bool__",
        "__float__",
        "__int__",
        "__index__",
        "__array__",
        "nonzero",
    ):
        monkeypatch.setattr(torch.Tensor, name, counted(name))
    for variant, lane in lanes.items():
        lane.groups["online"].on_host = False  # on a CPU loss and gradient are looked at before each step
        lane.update(batches_of(3, seed=0, **parts_of(variant)[2]), np.full(3, 1e-3), 4)
    assert reads == []
    lane.groups["online"].flat.values.sum().item()
    assert reads == ["item"]  # the counter counts


def test_greedy_actions_are_the_best_allowed_ones():
    for variant in ("dqn", "c51"):
        lane, program = lane_of(variant), PlainProgram(*parts_of(variant)[:2], seed=0)
        batches = batches_of(1, seed=1, masks=True)
        obs, mask = batches.obs[0], batches.next_action_mask[0]
        output = program.online(torch.from_numpy(obs)).detach()
        q = np.array([[program.worth(output[i, a]) for a in range(ACTIONS)] for i in range(ROWS)])
        np.testing.assert_array_equal(lane.infer(obs, None, False)[0], q.argmax(1))
        np.testing.assert_array_equal(lane.infer(obs, mask, True)[0], np.where(mask, q, -np.inf).argmax(1))
        assert lane.infer(obs, None, False)[0].dtype == np.int64


def test_greedy_without_noise_is_the_mean_network_and_draws_nothing():
    lane = lane_of("noisy")
    obs = batches_of(1, seed=3, rows=200).obs[0]
    before = lane.state()["generator"]
    calm = lane.infer(obs, None, False)[0]
    np.testing.assert_array_equal(lane.infer(obs, None, False)[0], calm)
    np.testing.assert_array_equal(lane.state()["generator"], before)
    wild = [lane.infer(obs, None, True)[0] for _ in range(3)]
    assert any((actions != calm).any() for actions in wild)
    np.testing.assert_array_equal(lane.infer(obs, None, False)[0], calm)


def test_evaluating_between_updates_changes_nothing_that_is_learnt():
    used = parts_of("everything")[2]
    one, other = lane_of("everything"), lane_of("everything")
    obs = batches_of(1, seed=3).obs[0]
    for first in range(4):
        for lane in (one, other):
            lane.update(batches_of(1, seed=first, **used), np.full(1, 1e-3), first)
        other.infer(obs, None, False)[0]
    assert_same_state(one.state(), other.state())


def test_parameters_are_a_copy_and_can_be_put_back():
    lane = lane_of("dqn")
    saved = lane.parameters()
    lane.update(batches_of(2, seed=0), np.full(2, 1e-2), 0)
    assert not np.array_equal(saved, lane.parameters())
    lane.load_parameters(saved)
    np.testing.assert_array_equal(lane.parameters(), saved)


@pytest.mark.parametrize(("tau", "expected"), [(1.0, 3.0), (0.25, 1.5)])
def test_the_target_moves_by_tau(tau, expected):
    lane = lane_of("dqn")
    lane.targets["online"].values.fill_(1.0)
    lane.groups["online"].flat.values.fill_(3.0)
    lane.move_target(tau)
    assert lane.targets["online"].values.unique().tolist() == [expected]


def test_dict_observations_and_bytes_can_be_learnt_from():
    spec = {"board": ArraySpec((2, 2), np.dtype(np.uint8)), "speed": ArraySpec((3,))}
    network = build_q_network(NetworkSettings(hidden=(8,)), spec, ACTIONS, 0)
    lane = EagerLane(QObjective(QSpec(**BASE | {"accumulate": 2})), network, "cpu", 0)
    batches = batches_of(3, seed=0)
    draw = np.random.default_rng(0)
    batches.obs = batches.next_obs = {
        "board": draw.integers(0, 255, (3, ROWS, 2, 2), dtype=np.uint8),
        "speed": draw.random((3, ROWS, 3), dtype=np.float32),
    }
    stats = lane.update(batches, np.full(3, 1e-3), 0)
    assert torch.isfinite(stats.scalars).all()
    assert lane.infer({name: array[0] for name, array in batches.obs.items()}, None, True)[0].shape == (ROWS,)
