"""A node of a job with roles: which rank it has, what it runs and which environment its command gets."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from agent.identity import Patience, Unknown, identify
from agent.launching.start import describe_cluster
from contract import tags
from contract.cluster import Cluster
from contract.containers import Container
from contract.reports import Exit
from contract.roles import Role, RoleEnd, find_place, list_ranks
from contract.shapes import seen_by
from tests.builders import JOB, ROLES, WITH_ROLES
from tests.node.world import Site

ADDRESSES = tuple(f"10.0.0.{number}" for number in range(4, 9))
TF = Cluster(addresses=ADDRESSES, rank=0, port=2222, roles=ROLES)


class Tags:
    """Metadata of a node that has these tags."""

    def __init__(self, index: int, **values: str) -> None:
        known = {"DEPLOYMENT": "yard", "JOB": "job-1", "ATTEMPT": "1", "DEADLINE": "2000000000", **values}
        self._tags = {getattr(tags, name): value for name, value in known.items()}
        self._index = str(index)

    def tag(self, key: str) -> str | None:
        return self._tags.get(key)

    def get(self, path: str) -> str:
        return self._index if path == "ami-launch-index" else "x"


def rank_of(index: int, **values: str) -> int:
    metadata: Any = Tags(index, **values)
    patience = Patience(most_s=1.0, now=lambda: 0.0, sleep=lambda _: None)
    return identify(metadata, patience).rank


def test_the_rank_is_that_of_the_first_of_the_launch_and_the_index_in_it() -> None:
    assert [rank_of(index, FIRST_RANK="3") for index in (0, 1)] == [3, 4]


def test_a_launch_that_says_no_first_rank_is_that_of_all_nodes() -> None:
    assert [rank_of(index) for index in (0, 1)] == [0, 1]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"FIRST_RANK": "chief"}, "tag trainyard:first-rank is 'chief'; allowed: a whole number from 0 on"),
        ({"FIRST_RANK": "-3"}, "tag trainyard:first-rank is '-3'"),
        ({"ATTEMPT": "2.0"}, "tag trainyard:attempt is '2.0'"),
    ],
)
def test_a_tag_that_is_no_number_is_named_with_what_it_is(values: dict[str, str], says: str) -> None:
    with pytest.raises(Unknown, match=re.escape(says)):
        rank_of(0, **values)


@pytest.mark.parametrize("roles", [ROLES, ()])
def test_a_node_whose_rank_the_job_does_not_have_begins_nothing_and_says_why(
    site: Site, roles: tuple[Role, ...]
) -> None:
    site.job = replace(site.job, nodes=5, roles=roles)
    site.offer("print('never')", command=() if roles else ("python", "train.py"))
    site.imds.values[f"tags/instance/{tags.FIRST_RANK}"] = "5"
    assert site.run() == site.report(urgent=True).exit
    assert site.run() == Exit(code=1, error="NodeLost", reason="rank 5: the job has no rank 5; allowed: 0 to 4")
    assert site.lines == []


# What it is told


@pytest.mark.parametrize(
    ("rank", "task"),
    [
        (0, {"type": "chief", "index": 0}),
        (1, {"type": "worker", "index": 0}),
        (2, {"type": "worker", "index": 1}),
        (3, {"type": "ps", "index": 0}),
        (4, {"type": "evaluator", "index": 0}),
    ],
)
def test_tf_config_is_what_tensorflow_documents_for_each_role(rank: int, task: dict[str, Any]) -> None:
    """tf.estimator.RunConfig: "chief", "worker" and "ps" are the cluster, and the evaluator is no part of it: it has a task alone."""
    said = replace(TF, rank=rank).build_variables()
    assert json.loads(said["TF_CONFIG"]) == {
        "cluster": {
            "chief": ["10.0.0.4:2222"],
            "worker": ["10.0.0.5:2222", "10.0.0.6:2222"],
            "ps": ["10.0.0.7:2222"],
        },
        "task": task,
    }


def test_cluster_spec_is_the_same_for_every_node_and_what_tf_train_cluster_spec_takes() -> None:
    (said,) = {replace(TF, rank=rank).build_variables()["CLUSTER_SPEC"] for rank in range(5)}
    assert json.loads(said) == json.loads(TF.build_variables()["TF_CONFIG"])["cluster"]


def test_programs_that_read_neither_have_their_role_and_the_addresses_of_all() -> None:
    said = replace(TF, rank=2).build_variables()
    assert (said["ROLE"], said["ROLE_RANK"]) == ("worker", "1")
    assert said["ROLE_ADDRESSES_WORKER"] == "10.0.0.5,10.0.0.6"
    assert said["ROLE_ADDRESSES_EVALUATOR"] == "10.0.0.8"


@pytest.mark.parametrize(
    ("role", "is_there"),
    [
        (Role(name="evaluator", count=1), False),
        (Role(name="viewer", count=1, ends=RoleEnd.ALONE), False),
        (Role(name="viewer", count=1), True),
        (Role(name="env", count=1, ends=RoleEnd.SERVED), True),
        (Role(name="actor", count=1, ends=RoleEnd.FREELY), True),
    ],
)
def test_only_who_looks_on_is_no_part_of_the_cluster(role: Role, is_there: bool) -> None:
    cluster = Cluster(addresses=ADDRESSES[:2], rank=0, port=1, roles=(Role(name="chief", count=1), role))
    assert (role.name in json.loads(cluster.build_variables()["CLUSTER_SPEC"])) is is_there


def node(rank: int, addresses: tuple[str, ...]) -> Any:
    class Node:
        pass

    found: Any = Node()
    found.rank, found.addresses = rank, addresses
    return found


def test_a_single_node_with_a_role_is_told_of_it_too() -> None:
    alone = replace(JOB, nodes=1, roles=(Role(name="learner", count=1),))
    assert describe_cluster(alone, node(0, ADDRESSES[:1]))["ROLE"] == "learner"


def test_a_cluster_whose_addresses_are_not_all_known_is_not_described() -> None:
    assert describe_cluster(WITH_ROLES, node(0, ADDRESSES[:3])) == {}


def test_each_node_runs_the_command_and_the_image_of_its_role() -> None:
    image = Container(source="images:v1", digest="sha256:1", repositories={})
    job = replace(WITH_ROLES, roles=(*ROLES[:3], replace(ROLES[3], container=image, command=())))
    seen = [seen_by(job, rank) for rank in range(5)]
    assert [one.command[-1:] for one in seen] == [("train.py",)] * 3 + [("serve.py",), ()]
    assert [one.container for one in seen] == [None] * 4 + [image]
    assert seen_by(JOB, 1) is JOB


def test_ranks_that_no_role_has_have_no_place() -> None:
    assert [place.role.name if (place := find_place(ROLES, rank)) else "" for rank in range(6)] == [
        *("chief", "worker", "worker", "ps", "evaluator", "")
    ]
    assert list_ranks(ROLES, RoleEnd.SERVED, RoleEnd.ALONE) == (3, 4)
