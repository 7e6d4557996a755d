"""A workbench: the command that Admit writes for it, where its work lies, and what no bench can have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.jobs import CheckpointLayout, Job, Scope
from contract.request_rules import RequestRules
from contract.workbench import Workbench
from tests.functions.admission.account import Account, account, refused, start
from tools.refusals.jobs import LEAST

EXAMPLES = Path(__file__).parents[3] / "examples" / "workbench"
TYPES = {"instance_types": LEAST["instance_types"]}
BENCH: dict[str, Any] = {**TYPES, "owner": "ada", "workbench": {"idle_minutes": 60, "install": True}}


@pytest.fixture
def there() -> Iterator[Account]:
    """A deployment with the setting `workbench`."""
    with account(rules=RequestRules(workbench=True)) as opened:
        yield opened


def job(there: Account) -> Job:
    found = there.job("job-1")
    assert found is not None
    return found


def option(found: Job, name: str) -> str:
    """The value of an option of JupyterLab's."""
    return next(word.partition("=")[2] for word in found.command if word.startswith(f"--{name}="))


def test_a_bench_needs_three_fields_and_admit_writes_its_command(there: Account) -> None:
    start(BENCH)
    found = job(there)
    assert found.command[:3] == ("python", "-m", "jupyterlab")
    assert found.workbench == Workbench(idle_minutes=60, install=True)
    assert found.code is None


def test_jupyterlab_listens_on_the_loopback_alone_and_takes_no_other_port(there: Account) -> None:
    start(BENCH)
    found = job(there)
    assert (option(found, "ServerApp.ip"), option(found, "ServerApp.port_retries")) == ("127.0.0.1", "0")


def test_all_three_idle_ends_are_those_of_the_request(there: Account) -> None:
    start({**BENCH, "workbench": {"idle_minutes": 7}})
    found = job(there)
    ends = ("ServerApp.shutdown_no_activity_timeout", "MappingKernelManager.cull_idle_timeout")
    assert {option(found, one) for one in (*ends, "TerminalManager.cull_inactive_timeout")} == {"420"}


def test_kernels_and_terminals_are_looked_at_every_minute_so_that_none_ends_much_later(there: Account) -> None:
    start(BENCH)
    found = job(there)
    assert option(found, "MappingKernelManager.cull_interval") == "60"
    assert option(found, "TerminalManager.cull_interval") == "60"


def test_a_kernel_with_an_open_page_is_ended_too_and_a_busy_one_is_not(there: Account) -> None:
    start(BENCH)
    found = job(there)
    assert option(found, "MappingKernelManager.cull_connected") == "True"
    assert not any("cull_busy" in word for word in found.command)


def test_the_token_is_in_no_document(there: Account) -> None:
    start(BENCH)
    assert not any("token" in word.lower() for word in job(there).command)


def test_the_files_of_a_bench_are_the_checkpoint_of_its_node_whatever_they_look_like(there: Account) -> None:
    start(BENCH)
    found = job(there)
    assert (found.checkpoint_scope, found.checkpoint_layout) == (Scope.RANK0, CheckpointLayout.NONE)


def test_the_example_is_taken_once_its_owner_is_named(there: Account) -> None:
    example = json.loads((EXAMPLES / "bench.json").read_text())
    assert "owner" in refused(example)
    start({**example, "owner": "ada"})
    assert job(there).workbench == Workbench(idle_minutes=60, install=True)


def test_the_request_of_the_guide_is_the_example() -> None:
    page = (EXAMPLES.parents[1] / "docs/guides/workbench.md").read_text()
    shown = json.loads(page.partition("examples/workbench/bench.json)):\n\n```json\n")[2].partition("```")[0])
    example = json.loads((EXAMPLES / "bench.json").read_text())
    assert {**shown, "owner": ""} == {**example, "owner": ""}


@pytest.mark.usefixtures("there")
def test_admit_says_where_the_work_lies_without_a_mount() -> None:
    told = start(BENCH)["workbench"]
    assert "the job's checkpoint, committed every 10 minutes" in told["work"]
    assert "of the node's disk of 100 GiB" in told["work"]
    assert "resume_from: job-1" in told["work"]
    assert "trainyard open job-1" in told["open"]


def test_admit_says_where_the_work_lies_on_a_mount(there: Account) -> None:
    mount = {"from": "efs:home", "at": "/bench", "read_only": False}
    told = start({**BENCH, "mounts": [mount]})["workbench"]
    assert told["work"].startswith("/bench is efs:home")
    assert job(there).benches_on_a_mount


def test_a_mount_beside_the_bench_leaves_the_work_in_the_checkpoint(there: Account) -> None:
    start({**BENCH, "mounts": [{"from": "fsx:corpus", "at": "/data"}]})
    assert not job(there).benches_on_a_mount


def test_a_job_without_a_bench_says_nothing_of_one(there: Account) -> None:
    assert "workbench" not in start(LEAST)
    assert job(there).workbench is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"command": ["python", "a.py"]}, "command: the request has a workbench"),
        ({"image": "images:digits-1", "arguments": ["a"]}, "arguments: the request has a workbench"),
        ({"stall": {"minutes": 5, "then": "stop"}}, "stall: the request has a workbench"),
        ({"retries": {"times": 1}}, "retries: the request has a workbench"),
        ({"checkpoint_scope": "shards"}, "checkpoint_scope: the request has a workbench, whose files are the checkpoint"),
        ({"checkpoint_layout": "dcp"}, "checkpoint_layout: the request has a workbench, whose files are the checkpoint"),
        ({"health": "deep"}, "health: a workbench has one node"),
        ({"launcher": "torchrun"}, "launcher: the request has a workbench"),
        ({"nodes": 2}, "nodes: 2 are too many for a workbench; allowed: 1"),
        ({"owner": ""}, "owner: is missing"),
        ({"workbench": {"idle_minutes": 1}}, "workbench.idle_minutes"),
        ({"workbench": {"idle_minutes": 9999}}, "workbench.idle_minutes"),
        ({"workbench": {"token": "x"}}, "workbench.token"),
        ({"workbench": True}, "workbench: "),
        ({"mounts": [{"from": "efs:home", "at": "/bench"}]}, "mounts.0.read_only: nothing could be saved in /bench"),
        ({"mounts": [{"from": "efs:home", "at": "/bench/x"}]}, "mounts.0.at: /bench/x lies in the folder of the workbench"),
    ],
)  # fmt: skip
def test_what_no_bench_can_have_is_refused_by_its_name(there: Account, given: dict[str, Any], words: str) -> None:
    assert words in refused({**BENCH, **given})
    assert there.job("job-1") is None


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("owner", [" ", "ada ", " ada"])
def test_an_owner_whom_no_person_can_be_is_refused(owner: str) -> None:
    assert f'owner: "{owner}" is no name' in refused({**BENCH, "owner": owner})


@pytest.mark.usefixtures("there")
def test_a_bench_without_an_owner_is_refused() -> None:
    assert "owner: is missing, and only its owner may open" in refused({**TYPES, "workbench": {}})


def test_a_deployment_without_the_setting_refuses_every_bench() -> None:
    with account(rules=RequestRules()) as closed:
        assert "workbench: the deployment has no workbenches" in refused(BENCH)
        assert closed.job("job-1") is None


@pytest.mark.usefixtures("there")
def test_all_reasons_come_at_once() -> None:
    text = refused({**BENCH, "nodes": 2, "command": "python a.py", "stall": {"minutes": 5, "then": "stop"}})
    assert sum(one in text for one in ("nodes: 2", "command: ", "stall: ")) == 3
