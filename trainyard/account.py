"""Reads what the doctor judges: every call is one that only reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import ClientError

from aws import ssm
from aws.clients import BRISK, client
from aws.ec2 import Ec2
from contract import names
from contract.aws_errors import code_of
from contract.codec import decode
from contract.places import Place
from trainyard.deployment import find_stack, list_outputs
from trainyard.diagnoses import (
    Diagnosis,
    Examination,
    Level,
    judge_alarm,
    judge_bootstrap,
    judge_errors,
    judge_image,
    judge_quota,
    judge_role,
    judge_stack,
    judge_subscriptions,
    judge_zones,
)
from trainyard.quotas import Quota, list_quotas

if TYPE_CHECKING:
    from stacks.settings import Settings

SPOT_SERVICE = "spot.amazonaws.com"
NO_QUOTA = frozenset({"NoSuchResourceException"})
DAY = timedelta(days=1)
ON: Literal["ALARM"] = "ALARM"
"""State of an alarm."""
METRICS_AT_ONCE = 500


def read_caller(region: str) -> Iterator[Diagnosis]:
    """Says whose credentials these are."""
    answer = client("sts", region, BRISK).get_caller_identity()
    yield Diagnosis(Level.OK, f"{answer['Arn']} in {region}")


def list_stacks(settings: Settings) -> dict[str, str]:
    """Returns every stack that a deploy of the settings brings, with its region."""
    name, home = settings.deployment, settings.home_region
    wanted = {
        "reaper": True,
        "builds": True,
        "images": True,
        "pages": True,
        "campaigns": bool(settings.campaigns or settings.watch),
        "dashboard": settings.dashboard,
    }
    return {
        names.foundation_stack(name): home,
        **{names.region_stack(name, one): one for one in settings.everywhere},
        names.workflow_stack(name): home,
        names.grid_stack(name): home,
        names.search_stack(name): home,
        **({names.catalogue_stack(name): home} if settings.catalogue else {}),
        **({names.kubernetes_stack(name): home} if settings.kubernetes.cluster else {}),
        **{names.stack(name, part): home for part, is_there in wanted.items() if is_there},
    }


def list_checks(settings: Settings, qualifier: str) -> list[Examination]:
    """Returns every check but that of the credentials. A region that does not answer spoils its own line alone."""
    name, region = settings.deployment, settings.home_region
    checks = [
        Examination(subject="bootstrap", find=lambda one=one: _read_bootstrap(one, qualifier))  # type: ignore[misc]
        for one in settings.everywhere
    ]
    for stack, where in list_stacks(settings).items():
        checks.append(Examination(subject="stack", find=lambda stack=stack, where=where: _read_stack(stack, where)))  # type: ignore[misc]
    quotas = list_quotas(settings.limits.instance_types, _name_types(settings))
    images = {**{str(family): one for family, one in settings.images.items()}, **settings.machine_images}
    for one in settings.training:
        checks += [
            Examination(subject="zones", find=lambda one=one: _read_zones(name, one)),  # type: ignore[misc]
            *(
                Examination(
                    subject="image",
                    find=lambda one=one, family=family, setting=setting: _read_image(one, family, setting),
                )  # type: ignore[misc]
                for family, setting in images.items()
            ),
            *(
                Examination(subject="quota", find=lambda one=one, quota=quota: _read_quota(one, quota))
                for quota in quotas
            ),  # type: ignore[misc]
        ]
    return [
        *checks,
        Examination(subject="service-linked role", find=_read_roles),
        Examination(subject="topic", find=lambda: _read_subscriptions(name, region)),
        Examination(subject="alarms", find=lambda: _read_alarms(name, region)),
        Examination(subject="functions", find=lambda: _read_errors(name, region)),
    ]


def _name_types(settings: Settings) -> list[str]:
    """Returns the instance types that presets of the settings name."""
    presets: Any = getattr(settings, "presets", {})
    given = (one if isinstance(one, dict) else one.model_dump() for one in presets.values())
    return [str(kind) for one in given for kind in one.get("instance_types") or ()]


def _read_bootstrap(region: str, qualifier: str) -> Iterator[Diagnosis]:
    account = client("sts", region, BRISK).get_caller_identity()["Account"]
    yield judge_bootstrap(region, account, ssm.parameter(f"/cdk-bootstrap/{qualifier}/version", region, BRISK))


def _read_stack(stack: str, region: str) -> Iterator[Diagnosis]:
    found = find_stack(stack, region)
    yield judge_stack(stack, region, found["StackStatus"] if found else None)


def _read_zones(name: str, region: str) -> Iterator[Diagnosis]:
    told = ssm.parameter(names.region_parameter(name, region), region, BRISK)
    yield judge_zones(region, decode(Place, told) if told else None, Ec2(region, BRISK).zones())


def _read_image(region: str, family: str, setting: str) -> Iterator[Diagnosis]:
    image = setting if setting.startswith("ami-") else ssm.parameter(setting, region, BRISK)
    is_there = image is not None and Ec2(region, BRISK).image(image) is not None
    yield judge_image(region, family, setting, image, is_there=is_there)


def _read_quota(region: str, quota: Quota) -> Iterator[Diagnosis]:
    yield judge_quota(region, quota, _read_value(region, quota.on_demand), _read_value(region, quota.spot))


def _read_value(region: str, code: str) -> float | None:
    if not code:
        return None
    try:
        found = client("service-quotas", region, BRISK).get_service_quota(ServiceCode="ec2", QuotaCode=code)
    except ClientError as problem:
        if code_of(problem) in NO_QUOTA:
            return None
        raise
    return float(found["Quota"]["Value"])


def _read_roles() -> Iterator[Diagnosis]:
    from stacks.parts.service_roles import ROLES

    for service, role in {**ROLES, SPOT_SERVICE: names.SPOT_ROLE.rpartition("/")[2]}.items():
        try:
            client("iam", None, BRISK).get_role(RoleName=role)
        except ClientError as problem:
            if code_of(problem) != "NoSuchEntity":
                raise
            yield judge_role(service, role, is_there=False)
        else:
            yield judge_role(service, role, is_there=True)


def _read_subscriptions(name: str, region: str) -> Iterator[Diagnosis]:
    stack = find_stack(names.foundation_stack(name), region)
    topic = list_outputs(stack).get("NotificationTopic") if stack else None
    if topic is None:
        yield Diagnosis(Level.WARN, "not known: the deployment has none yet")
        return
    pages = client("sns", region, BRISK).get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    found = [one for page in pages for one in page["Subscriptions"]]
    # Before its confirmation a subscription has a word in place of an ARN.
    yield from judge_subscriptions(
        topic, [(one["Protocol"], one["Endpoint"], one["SubscriptionArn"].startswith("arn:")) for one in found]
    )


def _read_alarms(name: str, region: str) -> Iterator[Diagnosis]:
    pages = (
        client("cloudwatch", region, BRISK)
        .get_paginator("describe_alarms")
        .paginate(AlarmNamePrefix=f"{name}-", StateValue=ON)
    )
    found = [one for page in pages for one in page["MetricAlarms"] if one["StateValue"] == ON]
    for one in found:
        yield judge_alarm(one["AlarmName"], one.get("AlarmDescription", ""))
    if not found:
        yield Diagnosis(Level.OK, "none is on")


def _read_errors(name: str, region: str) -> Iterator[Diagnosis]:
    pages = client("lambda", region, BRISK).get_paginator("list_functions").paginate()
    groups = {
        one["FunctionName"]: one.get("LoggingConfig", {}).get("LogGroup", "")
        for page in pages
        for one in page["Functions"]
        if one["FunctionName"].startswith(f"{name}-")
    }
    functions = list(groups)
    now = datetime.now(UTC)
    counted = dict[str, float]()
    for first in range(0, len(functions), METRICS_AT_ONCE):
        some = functions[first : first + METRICS_AT_ONCE]
        answer = client("cloudwatch", region, BRISK).get_metric_data(
            MetricDataQueries=[_ask_errors(number, one) for number, one in enumerate(some)],
            StartTime=now - DAY,
            EndTime=now,
        )
        for one in answer["MetricDataResults"]:
            counted[some[int(one["Id"].removeprefix("f"))]] = sum(one["Values"])
    failed = [
        found
        for function, errors in sorted(counted.items())
        if (found := judge_errors(function, errors, groups[function])) is not None
    ]
    yield from failed
    if not failed:
        yield Diagnosis(Level.OK, f"none of {len(functions)} failed within a day")


def _ask_errors(number: int, function: str) -> dict[str, Any]:
    metric = {
        "Namespace": "AWS/Lambda",
        "MetricName": "Errors",
        "Dimensions": [{"Name": "FunctionName", "Value": function}],
    }
    return {"Id": f"f{number}", "MetricStat": {"Metric": metric, "Period": 86_400, "Stat": "Sum"}}
