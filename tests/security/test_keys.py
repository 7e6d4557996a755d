"""No key that code of jobs can write is one under which another kind of document, or another job's, is read.

IAM's `*` spans slashes, so a pattern like `jobs/*/nodes/*` covers more keys than it shows. Here each pattern of the synthesised
policies meets each reader's keys as a regular language: a common key is found exactly if there is one, and printed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from inspect import get_annotations, getmembers, isfunction

import pytest

from contract import items, sessions
from localaws.iam.permissions import listed
from localaws.iam.simulator import Policies
from tests.security.languages import (
    ANY,
    JOB,
    NAME,
    NUMBER,
    REST,
    Pattern,
    common,
    fits,
    literal,
    of_policy,
    other_than,
)
from tests.security.policies import role
from tests.security.readers import (
    ANYTHING,
    BYTES,
    HOME,
    ITEMS,
    OWN,
    OWNER,
    READ_BY,
    S3_READERS,
    TABLE_READERS,
    Reader,
    pattern,
)

MINE = "resnet"
"""The job of the session whose keys are looked at."""
VARIABLES = {f"${{aws:PrincipalTag/{sessions.TAG}}}": MINE, "${aws:userid}": OWN}
WRITES = re.compile(r"s3:(\*|Put.*|Delete.*|Restore.*|Replicate.*|Abort.*)", re.IGNORECASE)
BUCKETS = (
    (re.compile(r"arn:aws:s3:::trainyard-home-[^/]*/(.*)"), HOME),
    (re.compile(r"arn:aws:s3:::trainyard-bytes-[^/]*/(.*)"), BYTES),
)
MEANT: dict[str, set[str]] = {
    "Node": {"own item"},
    "Job": {"commit", "remote command", "checkpoint file", "artifact", "environment"},
    "Training": {"bytes of a line"},
    "Child": {"record of a line"},
}
"""Roles of code that is not the control plane's, and the kinds of documents that each is there to write."""
OF_ONE_JOB = ("Job",)
"""Roles whose sessions are of one job."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a role may write."""

    role: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.role} {self.where} {self.text}"


def filled(text: str) -> str:
    for variable, value in VARIABLES.items():
        text = text.replace(variable, value)
    return text


def objects(policies: dict[str, Policies], names: Iterable[str]) -> Iterator[Written]:
    """The patterns of keys in the deployment's buckets that these roles may write."""
    for name in names:
        for document in policies[role(name)].values():
            for statement in document["Statement"]:
                if any(WRITES.fullmatch(action) for action in listed(statement["Action"])):
                    for resource in map(filled, listed(statement["Resource"])):
                        found = [(match[1], where) for form, where in BUCKETS if (match := form.fullmatch(resource))]
                        assert found or not resource.startswith("arn:aws:s3:::trainyard"), resource
                        yield from (Written(name, where, text) for text, where in found)


def partitions(policies: dict[str, Policies], names: Iterable[str]) -> Iterator[Written]:
    """The patterns of partition keys under which these roles may write items."""
    for name in names:
        for document in policies[role(name)].values():
            for statement in document["Statement"]:
                if any(
                    re.match(r"dynamodb:(\*|Put|Update|Delete|BatchWrite|PartiQL)", one)
                    for one in listed(statement["Action"])
                ):
                    (keys,) = (
                        values["dynamodb:LeadingKeys"]
                        for operator, values in statement["Condition"].items()
                        if operator.startswith("ForAllValues:")
                    )
                    yield from (Written(name, "table", filled(one)) for one in listed(keys))


def taken(written: Iterable[Written], readers: Iterable[Reader], meant: dict[str, set[str]]) -> list[str]:
    """A line for each key that a role may write and that somebody reads as a kind which the role is not there to write."""
    return [
        f"{one} covers {key}, which is read as: {reader.kind}"
        for one in written
        for reader in readers
        if reader.where == one.where and reader.kind not in meant[one.role]
        if (key := common(of_policy(one.text), reader.keys())) is not None
    ]


@pytest.fixture(scope="module", params=["as cdk.json has it", "everything that settings can add"])
def each(
    request: pytest.FixtureRequest, policies: dict[str, Policies], wide_policies: dict[str, Policies]
) -> dict[str, Policies]:
    return policies if request.param.startswith("as") else wide_policies


def test_no_object_that_a_node_or_a_training_writes_is_taken_for_another_kind(each: dict[str, Policies]) -> None:
    written = list(objects(each, MEANT))
    assert {one.role for one in written} == {"Job", "Training", "Child"}
    assert taken(written, S3_READERS, MEANT) == []


def test_a_node_writes_no_object_as_the_instance_that_it_is(each: dict[str, Policies]) -> None:
    assert list(objects(each, ["Node"])) == []


def test_no_item_that_a_node_writes_is_taken_for_another_kind_or_for_another_nodes(each: dict[str, Policies]) -> None:
    written = list(partitions(each, MEANT))
    assert [str(one) for one in written] == [f"Node table {OWN}"]
    assert taken(written, TABLE_READERS, MEANT) == []


def test_no_object_that_a_job_writes_is_read_for_another_job(each: dict[str, Policies]) -> None:
    others = other_than(MINE)
    found = [
        f"{one} covers {key}, a {reader.kind} of another job"
        for one in objects(each, OF_ONE_JOB)
        for reader in S3_READERS
        if reader.where == one.where and OWNER in reader.text
        for other in others
        if (key := common(of_policy(one.text), reader.keys(other))) is not None
    ]
    assert found == []


def test_each_kind_that_a_role_is_there_to_write_it_can_write(each: dict[str, Policies]) -> None:
    """Otherwise the tests above would say nothing."""
    for written in (objects(each, MEANT), partitions(each, MEANT)):
        for one in written:
            readers = [reader for reader in (*S3_READERS, *TABLE_READERS) if reader.where == one.where]
            kinds = {reader.kind for reader in readers if common(of_policy(one.text), reader.keys()) is not None}
            assert kinds & MEANT[one.role], str(one)


# The patterns that this deployment once had

OLD = {"Node": {"report", "urgent report", "order", "commit", "checkpoint file", "artifact"}}
OLD_WRITTEN = (
    Written("Node", HOME, "jobs/*/attempts/*/nodes/*"),
    Written("Node", HOME, "jobs/*/attempts/*/order.json"),
    Written("Node", BYTES, "jobs/*/checkpoints/*"),
    Written("Node", BYTES, "jobs/*/commits/*"),
    Written("Node", BYTES, "jobs/*/artifacts/*"),
)
_ATTEMPT = f"jobs/{OWNER}/attempts/\ue001/"
OLD_READERS = (
    Reader("launch intent", HOME, f"{_ATTEMPT}launch-{ANYTHING}"),
    Reader("report", HOME, f"{_ATTEMPT}nodes/\ue001.json"),
    Reader("urgent report", HOME, f"{_ATTEMPT}nodes/\ue001.urgent.json"),
    Reader("order", HOME, f"{_ATTEMPT}order.json"),
    Reader("newest attempt", HOME, f"jobs/{OWNER}/attempts/{ANYTHING}"),
)
"""Intents were listed by their prefix, and the newest attempt was the largest number after `attempts/`."""


@pytest.mark.parametrize("kind", ["launch intent", "newest attempt"])
def test_the_planted_launch_intent_of_old_is_found(kind: str) -> None:
    found = [line for line in taken(OLD_WRITTEN, OLD_READERS, OLD) if line.endswith(f": {kind}")]
    assert any("jobs/*/attempts/*/nodes/* covers" in line for line in found)


def test_the_key_that_was_planted_is_one_of_them() -> None:
    planted = "jobs/j/attempts/1/launch-9/attempts/0/nodes/z/attempts/2/launch-1.json"
    assert fits(of_policy(OLD_WRITTEN[0].text), planted)
    assert fits(OLD_READERS[0].keys(), planted)


def test_the_star_of_old_that_reached_into_artifacts_is_found() -> None:
    """`jobs/*/checkpoints/*` let a node read and delete what lay under `artifacts/rank-0/checkpoints/`."""
    checkpoints = Written("Node", BYTES, "jobs/*/checkpoints/*")
    found = taken([checkpoints], S3_READERS, {"Node": {"commit", "remote command", "checkpoint file"}})
    assert [line for line in found if line.endswith("read as: artifact")]


@pytest.mark.parametrize(
    "pattern_", ["jobs/*/checkpoints/*", "jobs/*", "jobs/resnet*/checkpoints/*", "jobs/?esnet/checkpoints/*", "*"]
)
def test_a_pattern_that_reaches_another_jobs_files_is_found(pattern_: str) -> None:
    files = next(reader for reader in S3_READERS if reader.kind == "checkpoint file")
    assert any(common(of_policy(pattern_), files.keys(other)) for other in other_than(MINE))


@pytest.mark.parametrize("partition", ["*", "AROA*", "job#*", "launch#*", "waiting", "AROAEXAMPLEOFANODE01:i-0*"])
def test_a_pattern_that_reaches_another_kind_of_item_is_found(partition: str) -> None:
    assert taken([Written("Node", "table", partition)], TABLE_READERS, MEANT)


# The tables are whole, and the search is right


@pytest.mark.parametrize("prefix", READ_BY, ids=lambda one: one.__name__)
def test_every_key_of_the_contract_is_in_the_table_of_readers(prefix: type) -> None:
    made = {name for name in vars(prefix) if not name.startswith("_")} - {"job", "grid", "root"}
    assert made == READ_BY[prefix], "a new kind of key needs its line in tests/security/readers.py"


def test_every_kind_of_item_is_in_the_table_of_readers() -> None:
    made = {name for name, one in getmembers(items, isfunction) if get_annotations(one).get("return") == "ItemKey"}
    assert made == ITEMS, "a new kind of item needs its line in tests/security/readers.py"


def drawn(one: Pattern, source: random.Random) -> str:
    """A key of the pattern."""
    return "".join(
        source.choice(sorted(part.letters)) for part in one for _ in range(source.randrange(4) if part.many else 1)
    )


SOME = [
    of_policy(text)
    for text in ("*", "a*b", "jobs/*/x/*", "jobs/?/x", "", "jobs/a/*", "*/artifacts/*", "jobs/*/attempts/*/nodes/*")
]
SOME += [JOB, NAME, NUMBER, REST, literal("jobs/a/x/b"), pattern(f"jobs/{OWNER}/x/{ANYTHING}")]


def test_a_common_key_is_found_exactly_where_there_is_one() -> None:
    source = random.Random(7)
    for one in SOME:
        for other in SOME:
            key = common(one, other)
            if key is not None:
                assert fits(one, key)
                assert fits(other, key)
            else:
                assert not any(fits(other, drawn(one, source)) for _ in range(200))


@pytest.mark.parametrize("name", ["resnet", "a", "-._"])
def test_the_other_jobs_are_all_but_one(name: str) -> None:
    source, others = random.Random(11), other_than(name)
    assert not any(fits(other, name) for other in others)
    near = {name + "2", name[:-1], name.upper(), "z" + name, *(drawn(JOB, source) for _ in range(300))} - {name, ""}
    assert [one for one in near if fits(JOB, one) and not any(fits(other, one) for other in others)] == []
    assert {letter for one in near for letter in one} <= ANY
