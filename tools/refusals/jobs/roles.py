"""Refusals of roles."""

from __future__ import annotations

from typing import Any

from job_requests.role_field import ROLE_MAY_BE, ROLES_MAY_BE
from tools.refusals.jobs.table import Row, Section

CHIEF: dict[str, Any] = {"name": "chief"}
SERVER: dict[str, Any] = {"name": "ps", "count": 2, "ends": "served"}
TAKEN = [CHIEF, SERVER]
MOST = 16
"""Of the deployment that the table speaks of."""


def _row(what: str, roles: Any, *says: str, **beside: Any) -> Row:
    return Row(what, {"roles": roles, **beside}, *says)


def _beside(field: str, value: Any, why: str) -> Row:
    return _row(
        f"{field} beside them",
        TAKEN,
        f"{field}: the request has roles, {why}; allowed: roles without {field}",
        **{field: value},
    )


def _wrong(what: str, role: dict[str, Any], says: str) -> Row:
    return _row(what, [CHIEF, {"name": "worker", **role}], says)


ROLES = Section(
    "roles",
    ROLES_MAY_BE,
    entry=ROLE_MAY_BE,
    rows=(
        _row("none", [], "roles: is empty"),
        _row("a word", "ps", 'roles: "ps" is not a list'),
        _row("no name", [{"count": 1}], "roles.0.name: is missing"),
        _row("a name that is no word", [{"name": "my workers"}], 'roles.0.name: "my workers" does not have the right form'),
        _row(
            "a name twice",
            [CHIEF, CHIEF],
            "roles.1.name: chief is the name of another role too; allowed: a name of its own",
        ),
        _wrong("no node", {"count": 0}, "roles.1.count: 0 is too small"),
        _wrong("an unknown end", {"ends": "never"}, 'roles.1.ends: "never" is not a known end'),
        _wrong("an unknown market", {"market": "cheap"}, 'roles.1.market: "cheap" is not a market'),
        _wrong("a type twice", {"instance_types": ["g5.xlarge", "g5.xlarge"]}, "roles.1.instance_types: g5.xlarge is named more than once"),
        _wrong("an unknown field", {"nodes": 2}, f"roles.1.nodes: there is no such field; allowed: {ROLE_MAY_BE}"),
        _row(
            "none that ends the job",
            [SERVER],
            "roles: none of them ends the job; allowed: ends job for one at least",
        ),
        _row(
            "too many nodes together",
            [{"name": "worker", "count": MOST}, SERVER],
            f"roles: they have {MOST + 2} nodes; allowed: up to {MOST} of all roles together (limits.max_nodes in cdk.json)",
        ),
        _beside("nodes", 2, "each of which has its count"),
        _beside("launcher", "torchrun", "whose commands find each other by CLUSTER_SPEC"),
        _beside("reservation", "cr-0123456789abcdef0", "whose nodes may be of several types"),
        _row(
            "one of our variables",
            TAKEN,
            "environment.ROLE_RANK: is set by Trainyard; allowed: any name but ROLE, ROLE_RANK, ROLE_ADDRESSES_...",
            environment={"ROLE_RANK": "1"},
        ),
        _row(
            "a deep health check",
            TAKEN,
            "health: deep measures the network between nodes that are alike, and roles may differ; allowed: quick or off",
            health="deep",
        ),
        _row(
            "EFA for a role whose type has none",
            [CHIEF, {**SERVER, "instance_types": ["g4dn.xlarge"]}],
            "efa: g5.xlarge has no EFA; allowed: auto, false, or types that have it, as in p5.48xlarge",
            "efa: g4dn.xlarge has no EFA; allowed: auto, false, or types that have it, as in p5.48xlarge",
            efa=True,
        ),
        _wrong(
            "an image for other processors",
            {"image": "images:arm"},
            "roles.1.image: images:arm is for arm64, and g5.xlarge has x86_64; allowed: an image for the processors of the type",
        ),
        _wrong(
            "arguments without an image",
            {"arguments": ["--fast"]},
            "roles.1.arguments: the role has no image; allowed: arguments beside an image, or words of command",
        ),
        _wrong(
            "a program that the archive lacks",
            {"command": ["python", "serve.py"]},
            "roles.1.command: runs serve.py, which is not in s3://yard-home/uploads/a.tar.gz; "
            "allowed: a file of the archive, by its path from the archive's root",
        ),
        _wrong(
            "nodes of a role whose torchrun leaves each by itself",
            {"count": 2, "command": ["torchrun", "train.py"]},
            "roles.1.command: torchrun would not join the 2 nodes of role worker into one training: it names no number of nodes "
            "(--nnodes); allowed: bash -c with torchrun --nnodes 2 --node-rank $ROLE_RANK --master-addr ${ROLE_ADDRESSES_WORKER%%,*} "
            "--master-port $MASTER_PORT ...",
        ),
        _row(
            "roles of one command whose torchrun leaves each node by itself",
            [CHIEF, {"name": "worker", "count": 2}],
            "command: torchrun would not join the 3 nodes into one training: it names no number of nodes (--nnodes); allowed: "
            "bash -c with torchrun --nnodes $NUM_NODES --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port $MASTER_PORT ...",
            command=["torchrun", "train.py"],
        ),
        _wrong(
            "a type that the deployment does not allow",
            {"instance_types": ["m5.large"]},
            "roles.1.instance_types: m5.large is not allowed in this deployment; "
            "allowed: g*, t4g.*, p3.*, trn1.2xlarge (limits.instance_types in cdk.json)",
        ),
    ),
)  # fmt: skip
