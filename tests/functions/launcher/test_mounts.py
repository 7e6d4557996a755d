"""Which security groups nodes get: their job's, and those that lead to the file systems which it mounts."""

from __future__ import annotations

from dataclasses import replace

from contract.fabric import Interface, InterfaceType
from contract.intents import Step
from contract.jobs import Job
from contract.mounts import MOST
from launcher.arguments import LaunchMarks, build_arguments, security_group
from tests.builders import JOB, MOUNTED, rung

MOST_OF_AN_INTERFACE = 5
"""EC2's quota of security groups of a network interface."""


def groups(job: Job, region: str = "eu-central-1") -> list[list[str]]:
    """Of each interface."""
    place = replace(JOB.places["eu-central-1"], region=region)
    job = replace(job, places={region: place})
    where = rung(region=region)
    sent = build_arguments(job, 1, where, group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p"))
    assert security_group(Step(rung=where, request=sent)) == "sg-1", "the job's own comes first"
    return [one["Groups"] for one in sent["NetworkInterfaces"]]


def test_a_job_without_mounts_has_its_own_group_alone() -> None:
    assert groups(JOB) == [["sg-1"]]


def test_nodes_carry_the_group_of_each_file_system_that_their_job_mounts_and_of_no_other() -> None:
    assert groups(replace(JOB, mounted=MOUNTED[:2])) == [["sg-1", "sg-corpus", "sg-home"]]


def test_a_file_system_that_is_mounted_twice_needs_one_group() -> None:
    twice = (MOUNTED[0], replace(MOUNTED[0], at="/again"))
    assert groups(replace(JOB, mounted=twice)) == [["sg-1", "sg-corpus"]]


def test_a_group_of_another_region_is_not_asked_for() -> None:
    assert groups(replace(JOB, mounted=MOUNTED), region="eu-west-1") == [["sg-1"]]


def test_every_interface_of_a_node_has_the_same_groups() -> None:
    efa = (Interface(type=InterfaceType.EFA), Interface(card=1, device=1, type=InterfaceType.EFA_ONLY))
    job = replace(JOB, mounted=MOUNTED[:1], interfaces={"g5.xlarge": efa})
    assert groups(job) == [["sg-1", "sg-corpus"]] * 2


def test_as_many_mounts_as_a_request_takes_fit_an_interface() -> None:
    assert MOST + 1 == MOST_OF_AN_INTERFACE
