"""Roles in a request: what each becomes, how its machines and those of the others make a ladder, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contract.codec import encode
from contract.jobs import Job, Market, Rung, Selection, SourceCheckpoint
from contract.limits import Limits
from contract.request_rules import RequestRules
from contract.roles import Role, RoleEnd
from contract.shapes import list_containers
from job_checks.facts import SourceFacts
from job_checks.resume import resolve_source
from job_requests.reading import list_preset_problems, read
from job_requests.request import JobRequest
from job_requests.role_field import RoleField
from job_requests.roles import split_request
from tests.builders import ADMISSION, ROLES, WITH_ROLES
from tests.fakes.yard import home
from tests.functions.admission.account import Account, account, refused, start
from tools.refusals.jobs import LEAST

CHIEF: dict[str, Any] = {"name": "chief"}
SERVER: dict[str, Any] = {"name": "ps", "ends": "served", "instance_types": ["g4dn.xlarge"]}
EVALUATOR: dict[str, Any] = {"name": "evaluator", "ends": "alone", "image": "images:v1", "arguments": ["--eval"]}


def admitted(there: Account, *roles: dict[str, Any], **fields: Any) -> Job:
    start({**LEAST, "roles": list(roles), **fields})
    found = there.job("job-1")
    assert found is not None
    return found


def shapes(rung: Rung) -> list[tuple[int, int, str, str, str]]:
    return [(one.first_rank, one.nodes, one.role, one.rung.instance_type, one.rung.market.value) for one in rung.shapes]


def test_ranks_go_by_the_order_of_roles_and_each_has_its_program(there: Account) -> None:
    job = admitted(there, CHIEF, {"name": "worker", "count": 2, "command": "python train.py --fast"}, SERVER)
    assert job.nodes == 4
    assert [(one.name, one.count, one.ends) for one in job.roles] == [
        ("chief", 1, RoleEnd.JOB),
        ("worker", 2, RoleEnd.JOB),
        ("ps", 1, RoleEnd.SERVED),
    ]
    assert [one.command for one in job.roles] == [
        ("python", "train.py"),
        ("python", "train.py", "--fast"),
        ("python", "train.py"),
    ]
    assert (job.command, job.container) == ((), None)


def test_the_image_of_each_role_is_pinned(there: Account) -> None:
    job = admitted(there, CHIEF, EVALUATOR, {"name": "env", "ends": "served", "image": "images:shell"})
    digests = [one.container.digest if one.container else "" for one in job.roles]
    assert digests[0] == ""
    assert len({*digests}) == 3
    assert all(one.startswith("sha256:") for one in digests[1:])
    assert job.roles[1].container is not None
    assert job.roles[1].container.arguments == ("--eval",)
    assert [one.source for one in list_containers(job)] == ["images:v1", "images:shell"]


def test_only_roles_that_end_the_job_have_shards_unless_the_request_says_so(there: Account) -> None:
    job = admitted(there, CHIEF, SERVER, {**EVALUATOR, "checkpoints": True})
    assert [one.has_checkpoints for one in job.roles] == [True, False, True]


def test_roles_that_follow_each_other_on_the_same_machines_are_one_shape(there: Account) -> None:
    job = admitted(there, CHIEF, {"name": "worker", "count": 2}, SERVER)
    assert shapes(job.ladder[0]) == [
        (0, 3, "chief+worker", "g5.xlarge", "on-demand"),
        (3, 1, "ps", "g4dn.xlarge", "on-demand"),
    ]


def test_roles_with_another_between_them_keep_their_ranks_and_so_their_own_shapes(there: Account) -> None:
    job = admitted(there, CHIEF, SERVER, {"name": "worker", "count": 2})
    assert shapes(job.ladder[0]) == [
        (2, 2, "worker", "g5.xlarge", "on-demand"),
        (0, 1, "chief", "g5.xlarge", "on-demand"),
        (1, 1, "ps", "g4dn.xlarge", "on-demand"),
    ]


def test_the_scarcest_shape_comes_first(there: Account) -> None:
    """The dearer type, and of one type what is bought on spot."""
    job = admitted(there, SERVER, CHIEF, {"name": "worker", "market": "spot"})
    assert [one[3:] for one in shapes(job.ladder[0])] == [
        ("g5.xlarge", "spot"),
        ("g5.xlarge", "on-demand"),
        ("g4dn.xlarge", "on-demand"),
    ]


def test_every_rung_has_all_nodes_in_one_zone_that_has_all_types(there: Account) -> None:
    job = admitted(there, CHIEF, SERVER)
    assert {rung.zone for rung in job.ladder} == {"eu-central-1a", "eu-central-1c"}  # g5.xlarge is not in the other
    for rung in job.ladder:
        assert {one.rung.zone for one in rung.shapes} == {rung.zone}


def test_a_rung_is_in_a_placement_group_as_soon_as_one_type_takes_part(there: Account) -> None:
    """The scarcest, which comes first, takes no part here."""
    kinds = home(there).catalogue.kinds
    kinds["g5.xlarge"] = replace(kinds["g5.xlarge"], strategies=("partition", "spread"))
    job = admitted(there, CHIEF, SERVER)
    first = job.ladder[0]
    assert [(one.rung.instance_type, one.rung.cluster) for one in first.shapes] == [
        ("g5.xlarge", False),
        ("g4dn.xlarge", True),
    ]
    assert first.cluster


def test_a_role_with_types_of_its_own_wants_none_of_the_accelerators_of_the_request() -> None:
    own = RoleField(name="ps", instance_types=["g4dn.xlarge"])
    request = JobRequest.model_construct(roles=[RoleField(name="chief"), own], accelerators="any", nodes=1)
    assert [one.accelerators for one in split_request(request)] == ["any", None]


def test_a_role_with_a_command_of_its_own_has_no_arguments_of_the_request() -> None:
    roles = [RoleField(name="chief"), RoleField(name="ps", command=["serve"])]
    request = JobRequest.model_construct(roles=roles, command=["train"], arguments=["--fast"], nodes=1)
    assert [(one.command, one.arguments) for one in split_request(request)] == [
        (["train"], ["--fast"]),
        (["serve"], []),
    ]


def test_earlier_choices_of_all_roles_come_before_later_ones(there: Account) -> None:
    both = ["g5.xlarge", "g4dn.xlarge"]
    job = admitted(there, {**CHIEF, "instance_types": both}, {**SERVER, "instance_types": both})
    chosen = [
        {one.first_rank: one.rung.instance_type for one in rung.shapes for _ in range(one.nodes)} for rung in job.ladder
    ]
    places = [sum(both.index(one) for one in each.values()) for each in chosen]
    assert places == sorted(places)
    assert len(job.ladder) == 2 * 4 + 1  # the second type is in a third zone too


def test_the_hour_of_a_rung_is_that_of_all_its_nodes(there: Account) -> None:
    job = admitted(there, CHIEF, {**SERVER, "count": 3})
    rung = job.ladder[0]
    assert rung.usd is not None
    assert rung.usd * job.nodes == pytest.approx(1.25 + 3 * 0.5)
    assert rung.most_usd is not None
    assert rung.most_usd > rung.usd


def test_a_cap_counts_every_role(there: Account) -> None:  # noqa: ARG001  (the account behind Admit)
    assert "max_cost_usd" in refused({**LEAST, "roles": [CHIEF, {**SERVER, "count": 8}], "max_cost_usd": 3})


def test_a_ladder_of_many_choices_is_bounded(there: Account) -> None:
    both = {"instance_types": ["g5.xlarge", "g4dn.xlarge"], "market": "spot-then-on-demand"}
    roles = [{"name": f"r{number}", **both} for number in range(12)]
    job = admitted(there, *roles, checkpoint_minutes=5)
    assert 20 < len(job.ladder) <= 240
    assert all(one.rung.market is Market.SPOT for one in job.ladder[0].shapes)


def test_what_a_walk_writes_down_is_bounded_by_the_requests_of_all_rungs(there: Account) -> None:
    """Neighbours of different types: each rung is twelve requests."""
    both = ["g5.xlarge", "g4dn.xlarge"]
    roles = [{"name": f"r{number}", "instance_types": both[:: 1 - number % 2 * 2]} for number in range(12)]
    job = admitted(there, *roles)
    assert len(job.ladder) > 2
    assert {rung.zone for rung in job.ladder} >= {"eu-central-1a", "eu-central-1c"}
    assert 120 < sum(len(rung.shapes) for rung in job.ladder) <= 240


def test_no_zone_that_has_types_for_all_roles_is_refused(there: Account) -> None:
    home(there).catalogue.not_offered |= {("g4dn.xlarge", "eu-central-1a"), ("g4dn.xlarge", "eu-central-1c")}
    said = refused({**LEAST, "roles": [CHIEF, SERVER]})
    assert "roles: no zone of the deployment offers types for all of them; allowed: types that one zone offers" in said


def test_what_is_wrong_with_two_roles_is_said_of_each(there: Account) -> None:  # noqa: ARG001
    said = refused({**LEAST, "roles": [{**CHIEF, "image": "images:nope"}, {**SERVER, "instance_types": ["m5.large"]}]})
    assert "roles.0.image: images:nope does not exist" in said
    assert "roles.1.instance_types: m5.large is not allowed" in said


def test_one_image_for_roles_of_different_processors_is_refused(there: Account) -> None:  # noqa: ARG001
    said = refused({**LEAST, "image": "images:arm", "roles": [{**SERVER, "instance_types": ["t4g.large"]}, CHIEF]})
    assert "images:arm is for arm64, and g5.xlarge has x86_64; allowed: an image for the processors of the type" in said
    assert "is for arm64, and t4g.large" not in said


def test_a_request_with_roles_leaves_room_for_one_more_tag_of_ours(there: Account) -> None:
    tags = {f"t{number}": "1" for number in range(16)}
    assert "tags: has 16 entries; allowed: up to 15 beside roles" in refused({**LEAST, "roles": [CHIEF], "tags": tags})
    tags.popitem()
    assert len(admitted(there, CHIEF, tags=tags).tags) == 15


def test_a_preset_may_have_roles_and_nodes_of_a_request_take_their_place() -> None:
    rules = RequestRules(presets={"ps-two": {"roles": [CHIEF, SERVER], "instance_types": ["g5.xlarge"]}})
    with account(rules=rules) as there:
        start({"preset": "ps-two", "code": LEAST["code"], "command": LEAST["command"]})
        start({"preset": "ps-two", "code": LEAST["code"], "command": LEAST["command"], "nodes": 2}, "job-2")
        with_roles, without = there.job("job-1"), there.job("job-2")
    assert with_roles is not None
    assert without is not None
    assert [one.name for one in with_roles.roles] == ["chief", "ps"]
    assert (without.nodes, without.roles) == (2, ())


def test_a_role_whose_image_is_missing_in_its_registry_starts_nothing(there: Account) -> None:
    refused({**LEAST, "roles": [CHIEF, {**EVALUATOR, "image": "images:nope"}]})
    assert there.changes == []


def test_a_dry_run_says_what_each_role_gets(there: Account) -> None:
    told = start({**LEAST, "roles": [CHIEF, {**SERVER, "count": 2}], "dry_run": True})
    assert told["roles"] == ["chief: rank 0, ends job", "ps: ranks 1 to 2, ends served"]
    assert told["ladder"][0].startswith("1 of g5.xlarge on-demand, 2 of g4dn.xlarge on-demand in eu-central-1")
    assert there.changes == []


def test_a_job_without_roles_says_nothing_of_them(there: Account) -> None:
    assert "roles" not in start(LEAST)
    found = there.job("job-1")
    assert found is not None
    written = encode(found)
    assert b'"roles"' not in written
    assert b'"shapes"' not in written


def test_arguments_of_the_request_go_to_roles_with_images_of_their_own(there: Account) -> None:
    image = {"image": "images:v1"}
    given = {name: value for name, value in LEAST.items() if name not in {"code", "command"}}
    start({**given, "arguments": ["--fast"], "roles": [{**CHIEF, **image}, {"name": "worker", **image}]})
    job = there.job("job-1")
    assert job is not None
    assert [one.container.arguments if one.container else () for one in job.roles] == [("--fast",)] * 2


def test_arguments_that_a_role_without_an_image_would_get_are_refused(there: Account) -> None:  # noqa: ARG001
    given = {**LEAST, "arguments": ["--fast"]}
    said = refused({**given, "roles": [{"name": "a", "image": "images:v1"}, {"name": "b"}]})
    assert "arguments: role b has no image that would take them; allowed: arguments of the roles with images" in said
    said = refused({**given, "roles": [{"name": "A-a", "image": "images:v1"}]})
    assert "arguments:" not in said


@pytest.mark.parametrize(
    ("name", "is_right"),
    [
        ("a" * 20, True),
        ("a" * 21, False),
        ("a_b", True),
        ("_a", False),
        ("a__b", False),
        ("a_" * 9 + "aa", True),
        ("a_" * 10 + "a", False),
    ],
)
def test_a_name_has_twenty_characters_of_which_some_may_be_underscores(name: str, *, is_right: bool) -> None:
    said = read({**LEAST, "roles": [{"name": name}]}, ADMISSION.limits)[1]
    assert (said == []) is is_right
    assert is_right or "digits and single _ between them" in said[0]


PRESETS = RequestRules(
    presets={"two": {"instance_types": ["g5.xlarge"], "nodes": 2, "launcher": "torchrun", "processes_per_node": 4}}
)


def test_a_launcher_of_a_preset_is_taken_out_beside_roles() -> None:
    given = {"preset": "two", "code": LEAST["code"], "command": LEAST["command"], "roles": [CHIEF]}
    assert read({**given, "launcher": "none"}, ADMISSION.limits, PRESETS)[1] == []
    said = read(given, ADMISSION.limits, PRESETS)[1]
    assert [one.partition(":")[0] for one in said] == ["launcher", "processes_per_node"]


@pytest.mark.parametrize(
    ("preset", "field"),
    [
        ({"roles": [CHIEF, CHIEF]}, "roles.1.name"),
        ({"roles": [SERVER]}, "roles"),
        ({"roles": [{**CHIEF, "count": 900}]}, "roles"),
        ({"roles": [CHIEF], "nodes": 2}, "nodes"),
        ({"roles": [CHIEF], "launcher": "mpi"}, "launcher"),
    ],
)
def test_a_preset_with_roles_that_can_never_be_right_is_refused_at_synth(preset: dict[str, Any], field: str) -> None:
    said = list_preset_problems(preset, ADMISSION.limits, RequestRules(presets={}))
    assert [one.partition(":")[0] for one in said] == [field]


def test_a_preset_may_leave_what_its_roles_lack_to_the_request() -> None:
    assert list_preset_problems({"roles": [CHIEF, SERVER]}, ADMISSION.limits, RequestRules(presets={})) == []


@pytest.mark.parametrize(
    ("roles", "is_right"),
    [(ROLES, True), (ROLES[::-1], False), ((replace(ROLES[0], count=2), *ROLES[2:]), False), ((), False)],
)
def test_own_files_of_another_job_go_to_the_same_roles_alone(roles: tuple[Role, ...], *, is_right: bool) -> None:
    fields = [{"name": one.name, "count": one.count} for one in ROLES]
    given = {**LEAST, "roles": fields, "resume_from": "job-0", "checkpoint_restore": "own"}
    request = read(given, ADMISSION.limits)[0]
    source = SourceCheckpoint(job="job-0", attempt=1, number=1, step=1, region="eu-central-1", bucket="b")
    facts = SourceFacts(job=replace(WITH_ROLES, roles=roles), runs=False, sets=(source,))
    said = resolve_source(request, "job-1", facts).problems
    assert (said == []) is is_right
    every = request.model_copy(update={"checkpoint_restore": Selection.ALL})
    assert resolve_source(every, "job-1", facts).problems == []


def test_what_roles_lack_may_stand_in_the_request_and_must_stand_somewhere() -> None:
    limits: Limits = ADMISSION.limits
    given = {"code": LEAST["code"], "roles": [{"name": "chief", "command": "python a.py"}, {"name": "ps"}]}
    _, problems = read(given, limits)
    assert [one.partition(":")[0] for one in problems] == [
        "roles.0.instance_types",
        "roles.1.instance_types",
        "roles.1.command",
    ]
    _, problems = read({**given, "command": "python b.py", "instance_types": ["g5.xlarge"]}, limits)
    assert problems == []
