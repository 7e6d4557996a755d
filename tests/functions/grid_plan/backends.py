"""Lines of every backend, planned and refused in an account with a cluster of Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from contract.environments import LineCluster
from contract.errors import InvalidRequest
from contract.grid import Line
from tests.fakes.ec2_catalogue import Catalogue, Kind
from tests.functions.grid_plan.account import ENVIRONMENT, Account, plan
from tools.refusals.grids.yard import DEFAULTS, HOME, MANIFEST

ANY_TYPE = replace(ENVIRONMENT.limits, instance_types=("ml.*",))
LINE = {"backend": "kubernetes", "entrypoint": ["python", "t.py"]}


@contextmanager
def cluster_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """Gives the account with a cluster, and types of EC2 in the home region."""
    cluster = LineCluster(name="lab", most_nodes=4)
    for name, value in replace(ENVIRONMENT, limits=ANY_TYPE, kubernetes=cluster).write().items():
        monkeypatch.setenv(name, value)
    made = Account()
    kinds = [
        Kind("g5.xlarge", gpu="A10G", count=1),
        Kind("m5.large"),
        Kind("p3.2xlarge", gpu="V100", count=1),
        Kind("p3dn.24xlarge", gpu="V100", count=8),
        Kind("p3.16xlarge", gpu="V100", count=8),
        Kind("g5g.xlarge", architectures=("arm64",)),
    ]
    nothing: dict[str, Any] = {one: {} for one in ("subnets", "templates", "images")}
    sets: dict[str, Any] = {one: set[str]() for one in ("groups", "security_groups", "profiles")}
    made.open_region(HOME, Catalogue(zones=(), **nothing, **sets, kinds={one.name: one for one in kinds}))
    made.prices.hourly = dict.fromkeys(("g5.xlarge", "m5.large", "p3.2xlarge", "p3dn.24xlarge", "p3.16xlarge"), 1.0)
    with made.connected():
        yield made


def planned(there: Account, *lines: Any, **given: Any) -> list[Line]:
    there.upload("".join(json.dumps(one) + "\n" for one in lines))
    plan({"manifest": MANIFEST, "defaults": DEFAULTS, **given})
    return there.lines()


def refused(there: Account, *lines: Any, **given: Any) -> list[str]:
    with pytest.raises(InvalidRequest) as problem:
        planned(there, *lines, **given)
    return [one.removeprefix("- ").removeprefix("line 1: ") for one in str(problem.value).split("\n")[1:]]
