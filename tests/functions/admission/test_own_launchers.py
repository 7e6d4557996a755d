"""A command that starts its processes itself: what is refused on several nodes, and in which kinds of work."""

from __future__ import annotations

from typing import Any

import pytest

from contract.request_rules import NO_RULES
from job_requests.reading import list_preset_problems, read
from tests.builders import LIMITS
from tests.functions.admission.account import Account, refused
from tools.refusals.jobs import LEAST
from tools.refusals.jobs.table import SECRET

TORCHRUN = ["torchrun", "train.py"]
TOLD = ["bash", "-c", "torchrun --nnodes $NUM_NODES --node-rank $NODE_RANK --master-addr $MASTER_ADDR train.py"]
SERVER = {"name": "ps", "command": ["python", "serve.py"]}


def problems(**given: Any) -> list[str]:
    return [one.partition("; allowed: ")[0] for one in read({**LEAST, **given}, LIMITS)[1]]


def alone(nodes: str, field: str = "command") -> list[str]:
    return [f"{field}: torchrun would not join {nodes} into one training: it names no number of nodes (--nnodes)"]


def test_nothing_is_changed_for_nodes_that_would_train_alone(there: Account) -> None:
    assert "\n- command: torchrun would not join the 2 nodes" in refused({**LEAST, "nodes": 2, "command": TORCHRUN})
    assert there.changes == []


@pytest.mark.parametrize("given", [{}, {"launcher": "none"}])
@pytest.mark.parametrize(
    "command", [TORCHRUN, ["accelerate", "launch", "train.py"], ["deepspeed", "train.py"], ["mpirun", "./a"], TOLD]
)
def test_one_node_may_start_its_processes_itself(command: list[str], given: dict[str, Any]) -> None:
    assert problems(command=command, **given) == []


@pytest.mark.parametrize("given", [{}, {"launcher": "none"}])
def test_several_nodes_may_do_so_where_the_launcher_is_told_of_them(given: dict[str, Any]) -> None:
    assert problems(nodes=2, command=TOLD, **given) == []
    assert problems(nodes=2, command=TORCHRUN, **given) == alone("the 2 nodes")


def test_the_number_that_counts_is_the_requests() -> None:
    command = ["torchrun", "--nnodes", "3", "--rdzv-endpoint", "host:1", "train.py"]
    assert problems(nodes=3, command=command) == []
    assert len(problems(nodes=2, command=command)) == 1


def test_variables_and_secrets_of_the_request_count() -> None:
    told = {"environment": {"PET_NNODES": "2"}, "secrets": {"PET_RDZV_ENDPOINT": f"{SECRET}token"}}
    assert problems(nodes=2, command=TORCHRUN, **told) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": "2"},
        {"launcher": "slurm", "nodes": 2},
        {"environment": 7, "nodes": 2},
        {"roles": 7},
        {"secrets": 7, "nodes": 2},
    ],
    ids=str,
)
def test_what_cannot_be_known_yet_is_not_refused_too(wrong: dict[str, Any]) -> None:
    assert [one for one in problems(command=TORCHRUN, **wrong) if one.startswith("command")] == []


def test_a_container_runs_the_command_and_its_arguments() -> None:
    image = {"image": "images:v1", "nodes": 2, "command": ["torchrun"]}
    assert problems(**image, arguments=["--nnodes", "2", "--master-addr", "host", "train.py"]) == []
    assert problems(**image, arguments=["--standalone", "train.py"]) == [
        "command: torchrun would not join the 2 nodes into one training: --standalone is for one node"
    ]


def test_what_an_images_entry_point_makes_of_its_arguments_is_not_known() -> None:
    given = {"image": "images:v1", "nodes": 2, "arguments": TORCHRUN, "instance_types": ["g5.xlarge"]}
    assert read(given, LIMITS)[1] == []


# Roles


@pytest.mark.parametrize(
    "roles",
    [
        [{"name": "chief", "command": TORCHRUN}, SERVER],
        [{"name": "chief", "command": TORCHRUN}, {**SERVER, "count": 4}],
        [{"name": "chief"}, {"name": "replica", "count": 2, "command": TORCHRUN, "ends": "served"}],
        [{"name": "worker", "count": 2, "command": TOLD}],
        [{"name": "chief", "command": [*TORCHRUN, "--chief"]}, {"name": "worker", "command": TORCHRUN}],
    ],
)
def test_a_role_of_one_node_or_of_servers_need_not_join_others(roles: list[dict[str, Any]]) -> None:
    assert problems(roles=roles) == []


@pytest.mark.parametrize("number", [2, 3])
def test_nodes_of_a_role_may_join_each_other_or_those_of_others_too(number: int) -> None:
    command = ["torchrun", "--nnodes", str(number), "--rdzv-endpoint", "host:1", "train.py"]
    assert problems(roles=[{**SERVER, "count": 1}, {"name": "worker", "count": 2, "command": command}]) == []


@pytest.mark.parametrize(
    ("roles", "found"),
    [
        (
            [SERVER, {"name": "worker", "count": 2, "command": TORCHRUN}],
            alone("the 2 nodes of role worker", "roles.1.command"),
        ),
        (
            [{"name": "worker", "count": 2, "command": TORCHRUN}, SERVER],
            alone("the 2 nodes of role worker", "roles.0.command"),
        ),
        ([{"name": "chief"}, {"name": "worker"}], alone("the 2 nodes")),
        ([{"name": "chief"}, {"name": "worker", "count": 2}, SERVER], alone("the 3 nodes that run it")),
    ],
)
def test_nodes_of_roles_that_run_the_same_are_one_training(roles: list[dict[str, Any]], found: list[str]) -> None:
    assert problems(roles=roles, command=TORCHRUN) == found


def test_the_right_line_of_a_role_has_its_own_addresses_and_ranks() -> None:
    roles = [SERVER, {"name": "worker", "count": 2, "command": TORCHRUN}]
    (problem,) = read({**LEAST, "roles": roles}, LIMITS)[1]
    assert problem.endswith(
        "; allowed: bash -c with torchrun --nnodes 2 --node-rank $ROLE_RANK --master-addr ${ROLE_ADDRESSES_WORKER%%,*} --master-port "
        "$MASTER_PORT ..."
    )


# Presets


@pytest.mark.parametrize(
    "preset",
    [
        {"command": TORCHRUN},
        {"nodes": 2},
        {"nodes": 1, "command": TORCHRUN},
        {"nodes": 2, "command": TOLD},
        {"nodes": 2, "command": TORCHRUN, "environment": {"PET_NNODES": "2", "PET_MASTER_ADDR": "host"}},
        {"nodes": 2, "command": ["train.py"], "processes_per_node": 2},
    ],
)
def test_a_preset_that_a_request_may_make_right_is_taken(preset: dict[str, Any]) -> None:
    assert list_preset_problems(preset, LIMITS, NO_RULES) == []


@pytest.mark.parametrize(
    ("preset", "field"),
    [
        ({"nodes": 2, "command": TORCHRUN}, "command"),
        ({"command": TORCHRUN, "roles": [{"name": "worker", "count": 2}]}, "command"),
        ({"launcher": "torchrun", "command": ["accelerate", "launch", "train.py"]}, "launcher"),
    ],
)
def test_a_preset_whose_nodes_would_train_alone_is_refused_at_synth(preset: dict[str, Any], field: str) -> None:
    (problem,) = list_preset_problems(preset, LIMITS, NO_RULES)
    assert problem.startswith(f"{field}: ")
