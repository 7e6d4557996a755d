"""Judges what an account says of itself, for the doctor: facts in, a line with its advice out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from contract.links import MORE
from contract.places import Place
from contract.text import one_line
from pages.words import count
from trainyard.quotas import Quota

MOST_SENTENCE = 200
"""Characters that a line shows of an alarm's sentence."""


class Level(str, Enum):
    """How good a finding is."""

    OK = "ok"
    WARN = "warn"
    """Something may be missing, or could not be read."""
    WRONG = "wrong"
    """Jobs, or a deploy, fail because of it."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One line."""

    level: Level
    what: str
    advice: str = ""
    """What to do; empty where nothing is to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """One subject of the doctor's."""

    subject: str
    find: Callable[[], Iterable[Diagnosis]]


def judge_bootstrap(region: str, account: str, version: str | None) -> Diagnosis:
    """`version` is that of the CDK's bootstrap; None where there is none."""
    if version is None:
        return Diagnosis(
            Level.WRONG, f"{region} is not bootstrapped", f"run: npx cdk bootstrap aws://{account}/{region}"
        )
    return Diagnosis(Level.OK, f"{region}: version {version}")


def judge_stack(stack: str, region: str, status: str | None) -> Diagnosis:
    """`status` is CloudFormation's; None where there is no such stack."""
    if status is None:
        return Diagnosis(Level.WRONG, f"{stack} is not deployed in {region}", "run: make deploy")
    if "FAILED" in status or status == "ROLLBACK_COMPLETE":
        return Diagnosis(
            Level.WRONG, f"{stack}: {status}", "its events in CloudFormation's console say why; then: make deploy"
        )
    if status.endswith("IN_PROGRESS"):
        return Diagnosis(Level.WARN, f"{stack}: {status}", "wait until the deploy has ended")
    return Diagnosis(Level.OK, f"{stack}: {status}")


def judge_quota(region: str, quota: Quota, on_demand: float | None, spot: float | None) -> Diagnosis:
    """The values are vCPUs; None where Service Quotas does not say, or there is no such quota."""
    values = [
        f"{value:g} vCPUs {how}" for how, value in (("on demand", on_demand), ("on spot", spot)) if value is not None
    ]
    if not values:
        return Diagnosis(Level.WARN, f"{region}: Service Quotas does not say how many vCPUs of {quota.words} may run")
    what = f"{region}: {quota.words}: {', '.join(values)}"
    if on_demand == 0:
        return Diagnosis(
            Level.WARN,
            what,
            f"to run such types: aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {quota.on_demand} "
            f"--region {region} --desired-value 8",
        )
    return Diagnosis(Level.OK, what)


def judge_image(region: str, family: str, setting: str, image: str | None, *, is_there: bool) -> Diagnosis:
    """`image` is the AMI that the setting means in the region; None where it means none."""
    level = Level.WRONG if family == "x86_64" else Level.WARN
    if image is None:
        return Diagnosis(
            level, f"{region}: {family}: the parameter {setting} is not there", "name another one in images of cdk.json"
        )
    if not is_there:
        return Diagnosis(
            level,
            f"{region}: {family}: the region has no image {image} ({setting})",
            "name another one in images of cdk.json",
        )
    return Diagnosis(Level.OK, f"{region}: {family}: {image}")


def judge_zones(region: str, place: Place | None, available: Sequence[str]) -> Diagnosis:
    """`place` is what the region's stack says of itself; `available` are the zones that the account may use."""
    if place is None or not place.zones:
        return Diagnosis(Level.WRONG, f"{region}: no stack describes a network there", "run: make deploy")
    ours = [one.name for one in place.zones]
    gone = sorted(set(ours) - set(available))
    if gone:
        return Diagnosis(
            Level.WARN,
            f"{region}: nodes use {', '.join(ours)}, and {', '.join(gone)} cannot be used now",
            "see AWS's health page",
        )
    return Diagnosis(Level.OK, f"{region}: nodes use {', '.join(ours)} of {len(available)} zones")


def judge_subscriptions(topic: str, subscriptions: Sequence[tuple[str, str, bool]]) -> Iterator[Diagnosis]:
    """`subscriptions`: protocol, address, and whether it is confirmed."""
    if not subscriptions:
        yield Diagnosis(
            Level.WARN,
            "no person hears of alarms and ends",
            f"run: aws sns subscribe --topic-arn {topic} --protocol email --notification-endpoint you@example.com",
        )
    for protocol, address, is_confirmed in subscriptions:
        if is_confirmed:
            yield Diagnosis(Level.OK, f"{address} by {protocol}")
        else:
            yield Diagnosis(
                Level.WARN,
                f"{address} by {protocol} is not confirmed",
                "open the link in the message that AWS sent there",
            )


def judge_alarm(name: str, description: str) -> Diagnosis:
    """An alarm that is on: what it means in a sentence, and where the runbook has the rest."""
    first = description.partition(". ")[0]
    where = description.rpartition(MORE)[2].rstrip(".") if MORE in description else ""
    return Diagnosis(
        Level.WRONG,
        f"{name} is on: {one_line(first, MOST_SENTENCE)}" if first else f"{name} is on",
        f"what to do: {one_line(where, MOST_SENTENCE)}" if where else "",
    )


def judge_errors(function: str, errors: float, group: str) -> Diagnosis | None:
    """`errors` of the last day; None where there were none. `group` is that of its log, empty where AWS does not say. Lambda counts every
    answer that is an error, and functions refuse a request, or a launch without capacity, by one."""
    if not errors:
        return None
    return Diagnosis(
        Level.WARN,
        f"{function}: {count(round(errors), 'call')} of a day ended with an error, as one that refuses a request or finds no capacity does",
        f"its log says which: {f'log group {group}' if group else 'Lambda names its log group'}",
    )


def judge_role(service: str, role: str, *, is_there: bool) -> Diagnosis:
    """A service-linked role."""
    if is_there:
        return Diagnosis(Level.OK, role)
    return Diagnosis(
        Level.WARN, f"{role} is missing", f"run: aws iam create-service-linked-role --aws-service-name {service}"
    )
