"""Which machines of a cluster get runs, told by a cluster that is made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.core.arithmetic import arithmetic
from hotloop.core.errors import RunError
from hotloop.scale.machines import Machines

ALIKE = arithmetic()
OTHER = ALIKE | {"vector unit": "NEON"}


class MadeUp:
    """As much of Ray as the handshake needs; `facts` holds what each node answers, or raises."""

    def __init__(self, **facts: Any) -> None:
        self.facts, self.gone, self.cores = facts, set[str](), dict.fromkeys(facts, 2)
        strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda key, soft: key)
        self.util = SimpleNamespace(scheduling_strategies=strategies)

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {
                "NodeID": key,
                "Alive": key not in self.gone,
                "Resources": {"CPU": self.cores[key]} if self.cores[key] else {},
                "NodeManagerHostname": "host",
            }
            for key in self.facts
        ]

    def remote(self, **_: Any) -> Any:
        return lambda function: SimpleNamespace(
            options=lambda scheduling_strategy: SimpleNamespace(remote=lambda: scheduling_strategy)
        )

    def get(self, key: str, timeout: float) -> Any:
        if isinstance(self.facts[key], Exception):
            raise self.facts[key]
        return self.facts[key]


def test_one_that_differs_is_left_out_by_name_or_told() -> None:
    said: list[str] = []
    found = Machines(MadeUp(a=ALIKE, b=OTHER), False, said.append)
    assert (found.usable(), found.barred(), found.cores()) == (["a"], ["b"], 2)
    assert said == [f"host-b cannot take part: vector unit NEON instead of {ALIKE['vector unit']}"]
    found = Machines(MadeUp(a=ALIKE, b=OTHER), True, said.append)
    assert (found.usable(), found.barred(), found.cores()) == (["a", "b"], [], 4)
    assert said[1].startswith("host-b takes part all the same")
    assert list(found.differing) == ["host-b"]


@pytest.mark.parametrize("mixed", [False, True])
def test_one_without_hotloop_never_takes_part(mixed: bool) -> None:
    ray = MadeUp(a=ImportError("a long story\nModuleNotFoundError: No module named 'hotloop'\n"))
    with pytest.raises(RunError, match="^host-a cannot take part: ModuleNotFoundError: No module named 'hotloop'"):
        Machines(ray, mixed, print)


def test_a_cluster_without_cores_is_told() -> None:
    ray = MadeUp(head=ALIKE)
    ray.cores["head"] = 0
    with pytest.raises(RunError, match="no machine of the cluster has a core"):
        Machines(ray, False, print)


def test_the_machine_without_cores_that_we_sit_at_does_not_count_as_one_that_may_train() -> None:
    ray = MadeUp(head=ALIKE, a=OTHER)
    ray.cores["head"] = 0
    with pytest.raises(RunError, match="host-a cannot take part"):
        Machines(ray, False, print)


def test_one_that_failed_gets_runs_again_where_no_other_is_left() -> None:
    ray = MadeUp(a=ALIKE, b=ALIKE)
    found = Machines(ray, False, print)
    one = found.find("a")
    assert one is not None
    one.faulty = True
    assert (found.usable(), found.barred()) == (["b"], ["a"])
    ray.gone.add("b")
    assert found.usable() == []
    assert (found.barred(), found.usable()) == ([], ["a"])


def test_one_that_joins_later_is_asked_before_it_gets_a_run() -> None:
    said: list[str] = []
    ray = MadeUp(a=ALIKE)
    found = Machines(ray, False, said.append)
    ray.facts |= {"b": OTHER, "c": ALIKE}
    ray.cores |= {"b": 1, "c": 1}
    assert found.find("b") is None
    assert len(said) == 1
    one = found.find("c")
    assert one is not None
    assert one.name == "host-c"


def test_one_that_goes_while_it_is_asked_is_not_spoken_of() -> None:
    said: list[str] = []
    ray = MadeUp(a=ALIKE)
    found = Machines(ray, False, said.append)
    ray.facts["b"], ray.cores["b"] = RuntimeError("NodeDiedError"), 1
    nodes = ray.nodes
    ray.nodes = lambda: (nodes(), ray.gone.add("b"))[0]  # type: ignore[method-assign,func-returns-value]
    assert found.find("b") is None
    assert said == []
