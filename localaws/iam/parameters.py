"""Reads from a recorded call what IAM's questions are made of: resources, tags, numbered parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from localaws.recorder import Call

Context = dict[str, str | list[str]]
Asked = Iterator[tuple[str, str, Context]]
"""(action, resource, context beside the region)"""


def account_of(call: Call) -> str:
    return call.role.split(":")[4]


def arn(call: Call, resource: str) -> str:
    return f"arn:aws:{call.service}:{call.region}:{account_of(call)}:{resource}"


def numbered(call: Call, before: str, after: str = "") -> list[str]:
    """Returns the values of `InstanceId.1`, `InstanceId.2` ... or `Tag.1.Key`, `Tag.2.Key` ..., in order."""
    pattern = re.compile(re.escape(before) + r"(\d+)" + re.escape(after))
    found = {int(match[1]): value for key, value in call.parameters.items() if (match := pattern.fullmatch(key))}
    return [found[number] for number in sorted(found)]


def specified(call: Call, kind: str) -> dict[str, str]:
    """Returns the tags that a launch requests for one kind of new resource."""
    for number, one in enumerate(numbered(call, "TagSpecification.", ".ResourceType"), start=1):
        if one == kind:
            prefix = f"TagSpecification.{number}.Tag."
            return dict(zip(numbered(call, prefix, ".Key"), numbered(call, prefix, ".Value"), strict=True))
    return {}


def tagged(where: str, tags: Mapping[str, str]) -> Context:
    return {f"aws:{where}/{key}": value for key, value in tags.items()}


def asking(tags: Mapping[str, str]) -> Context:
    return {**tagged("RequestTag", tags), "aws:TagKeys": sorted(tags)} if tags else {}
