"""Which security group an attempt gets: facts in, choice with its reason out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aws.facts import Instance
from contract.errors import InvalidRequest
from contract.groups import Taken
from launcher.groups import Choice, Facts, choose
from tests.builders import NOW

POOL = ("sg-1", "sg-2", "sg-3")
FACTS = Facts(region="eu-central-1", pool=POOL, taken=(), over=frozenset(), instances=())
LATER = NOW + 3600


def taken(group: str, job: str = "other", attempt: int = 1, until: float = LATER) -> Taken:
    return Taken(group=group, job=job, attempt=attempt, until=until)


def node(group: str, job: str = "other", state: str = "running", attempt: int = 1) -> Instance:
    return Instance(
        id=f"i-{job}-{state}",
        region="eu-central-1",
        state=state,
        rank=0,
        address="10.0.0.4",
        launched_at=NOW,
        job=job,
        attempt=attempt,
        security_groups=(group,) if group else (),
    )


def chosen(facts: Facts = FACTS, job: str = "job-1", attempt: int = 1, now: float = NOW) -> Choice:
    return choose(job, attempt, facts, until=LATER, now=now)


def test_a_job_takes_a_group_that_nobody_has() -> None:
    for busy in POOL:
        free = chosen(replace(FACTS, pool=(busy, "sg-9"), taken=(taken(busy),)))
        assert (free.group, free.shared_with) == ("sg-9", ())
        assert taken("sg-9", "job-1") in free.taken


def test_the_choice_is_the_same_whenever_it_is_made_of_the_same_facts() -> None:
    assert len({chosen() for _ in range(5)}) == 1


def test_a_group_is_not_free_while_any_instance_in_it_may_run() -> None:
    for state in ("pending", "running", "shutting-down", "stopping", "stopped", "something new"):
        found = chosen(replace(FACTS, pool=("sg-1", "sg-2"), instances=(node("sg-1", state=state),)))
        assert (found.group, found.shared_with) == ("sg-2", ()), state


def test_a_terminated_instance_keeps_no_group() -> None:
    assert chosen(replace(FACTS, pool=("sg-1",), instances=(node("sg-1", state="terminated"),))).shared_with == ()


def test_an_orphan_keeps_the_group_of_a_job_that_is_long_over() -> None:
    over = frozenset({("other", 1)})
    orphaned = replace(
        FACTS, pool=("sg-1",), taken=(taken("sg-1", until=NOW - 1),), over=over, instances=(node("sg-1"),)
    )
    assert chosen(orphaned).shared_with == ("other",)


def test_an_orphan_of_which_the_table_knows_nothing_keeps_its_group() -> None:
    assert chosen(replace(FACTS, pool=("sg-1",), instances=(node("sg-1"),))).shared_with == ("other",)


def test_an_instance_that_lost_its_job_keeps_its_group() -> None:
    assert chosen(replace(FACTS, pool=("sg-1",), instances=(node("sg-1", job=""),))).shared_with == ("i--running",)


def test_an_instance_that_shows_no_group_any_more_keeps_what_its_job_took() -> None:
    ending = replace(
        FACTS,
        pool=("sg-1",),
        taken=(taken("sg-1"),),
        over=frozenset({("other", 1)}),
        instances=(node("", state="shutting-down"),),
    )
    assert chosen(ending).shared_with == ("other",)


def test_a_launch_that_may_still_come_keeps_its_group() -> None:
    waiting = replace(FACTS, pool=("sg-1",), taken=(taken("sg-1"),), over=frozenset({("other", 2), ("another", 1)}))
    assert chosen(waiting).shared_with == ("other",)


def test_what_is_over_is_forgotten() -> None:
    found = chosen(replace(FACTS, pool=("sg-1",), taken=(taken("sg-1"),), over=frozenset({("other", 1)})))
    assert (found.shared_with, found.taken) == ((), (taken("sg-1", "job-1"),))


def test_what_nobody_closed_is_forgotten_once_no_launch_of_it_can_begin() -> None:
    facts = replace(FACTS, pool=("sg-1",), taken=(taken("sg-1", until=NOW + 1),))
    assert chosen(facts).shared_with == ("other",)
    assert chosen(facts, now=NOW + 1).shared_with == ()


def test_a_later_attempt_keeps_the_group_of_its_job() -> None:
    for group in POOL:
        second = chosen(replace(FACTS, taken=(taken(group, "job-1"),)), attempt=2)
        assert (second.group, second.taken) == (group, (taken(group, "job-1", 2),))


def test_a_jobs_own_nodes_are_no_others() -> None:
    second = chosen(replace(FACTS, pool=("sg-1",), instances=(node("sg-1", "job-1"),)), attempt=2)
    assert (second.group, second.shared_with) == ("sg-1", ())


def test_a_later_attempt_leaves_a_group_that_was_shared_once_another_one_is_free() -> None:
    facts = replace(FACTS, pool=("sg-1", "sg-2"), taken=(taken("sg-1"), taken("sg-1", "job-1")))
    second = chosen(facts, attempt=2)
    assert (second.group, second.shared_with) == ("sg-2", ())


def test_a_group_that_is_left_stays_taken_until_its_attempt_is_over() -> None:
    both = (taken("sg-1"), taken("sg-1", "job-1"))
    facts = replace(FACTS, pool=("sg-1", "sg-2"), taken=both)
    assert chosen(facts, attempt=2).taken == (taken("sg-1", "job-1"), taken("sg-1"), taken("sg-2", "job-1", 2))
    assert chosen(replace(facts, over=frozenset({("job-1", 1)})), attempt=2).taken == (
        taken("sg-1"),
        taken("sg-2", "job-1", 2),
    )


def test_a_launch_that_comes_late_takes_nothing_from_a_later_attempt() -> None:
    assert chosen(replace(FACTS, taken=(taken("sg-2", "job-1", 3),)), attempt=2).taken == (taken("sg-2", "job-1", 3),)


def test_only_a_pool_that_is_used_up_is_shared_and_the_choice_says_so() -> None:
    full = replace(FACTS, taken=tuple(taken(group, f"job-{place}") for place, group in enumerate(POOL, start=7)))
    found = chosen(full)
    assert len(found.shared_with) == 1
    assert f"shared with {found.shared_with[0]}" in found.reason
    assert "all security groups of eu-central-1 (3) were in use" in found.reason
    assert set(full.taken) < set(found.taken)


def test_a_group_is_shared_with_as_few_jobs_as_possible() -> None:
    full = replace(
        FACTS,
        taken=(taken("sg-1", "a"), taken("sg-1", "b"), taken("sg-2", "c"), taken("sg-2", "d"), taken("sg-3", "e")),
    )
    assert {chosen(full, job).group for job in ("job-1", "job-2", "job-3")} == {"sg-3"}


def test_a_job_and_its_node_are_one_that_shares() -> None:
    assert chosen(replace(FACTS, pool=("sg-1",), taken=(taken("sg-1"),), instances=(node("sg-1"),))).shared_with == (
        "other",
    )


def test_a_pool_of_one_is_shared_by_all_and_each_of_the_later_ones_is_told() -> None:
    facts, shared = replace(FACTS, pool=("sg-1",)), []
    for job in ("a", "b", "c"):
        found = chosen(facts, job)
        shared.append(found.shared_with)
        facts = replace(facts, taken=found.taken)
    assert shared == [(), ("a",), ("a", "b")]


def test_people_are_told_a_few_names_and_how_many_more_there_are() -> None:
    crowd = tuple(taken("sg-1", f"job-{number}") for number in range(6))
    found = chosen(replace(FACTS, pool=("sg-1",), taken=crowd), "mine")
    assert "shared with job-0, job-1, job-2, 3 more," in found.reason
    assert len(found.shared_with) == 6


def test_groups_that_are_not_of_the_region_are_nobodys_business_here() -> None:
    elsewhere = replace(FACTS, taken=(taken("sg-abroad", "a"),), instances=(node("sg-abroad", "b"),))
    found = chosen(elsewhere)
    assert found.group in POOL
    assert found.shared_with == ()
    assert taken("sg-abroad", "a") in found.taken


def test_a_region_without_a_group_launches_nothing() -> None:
    with pytest.raises(InvalidRequest, match="eu-central-1 names no security group"):
        chosen(replace(FACTS, pool=()))
