"""Writes the table of docs/explanation/security.md: who may change what, from the policies of the synthesised templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from contract import sessions, tags
from tools.synthesis import ROOT, synthesise_once

PAGE = ROOT / "docs" / "explanation" / "security.md"
BEGIN, END = (
    "<!-- Written by `make docs` from the synthesised policies. -->",
    "<!-- The end of what `make docs` writes. -->",
)
READS = re.compile(r"[a-z0-9-]+:(Get|List|Describe|BatchGet|BatchCheck|Query|Filter|Check)")
LOGICAL = re.compile(r"(ExportsOutput(Ref|FnGetAtt))?(\w+?)[0-9A-F]{8}\w*$")
"""A construct's id in a logical id, or in the name of an export."""
OWN_LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}
LEADING = "dynamodb:LeadingKeys"
MARKS = {
    f"aws:ResourceTag/{tags.DEPLOYMENT}": "with our tag",
    f"aws:ResourceTag/{tags.DEPLOYMENT} null": "without a deployment's tag",
    f"aws:RequestTag/{tags.DEPLOYMENT}": "tagged as ours",
    f"aws:RequestTag/{sessions.TAG}": "tagged with a job",
    f"aws:ResourceTag/{tags.PROTECTED} null": "not protected",
    "ec2:InstanceProfile": "with our instance profile",
    "ec2:Owner": "of known owners",
    "cloudwatch:namespace": "in one namespace",
    "iam:PassedToService": "to one service",
}
"""Words for the conditions that a reader has to know."""


def pages() -> dict[Path, str]:
    return {PAGE: page(PAGE.read_text("utf-8"), table(synthesise_once().stacks.values()))}


def page(before: str, lines: list[str]) -> str:
    """Returns the page with its table replaced."""
    head, _, rest = before.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return "\n".join([f"{head}{BEGIN}", "", *lines, "", f"{END}{tail}"])


def table(templates: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the lines of the table for these templates."""
    found: dict[str, list[str]] = {}
    for template in templates:
        for who, statement in _statements(template["Resources"]):
            found.setdefault(who, []).extend(_changes(statement))
    rows = [f"| {who} | {'; '.join(dict.fromkeys(may)) or 'nothing'} |" for who, may in sorted(found.items())]
    return ["| Role | May change |", "|---|---|", *rows]


def _statements(resources: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for logical, one in resources.items():
        given = one.get("Properties", {})
        if one["Type"] in {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"} and given.get("Roles"):
            owners = [_name(owner["Ref"]).removesuffix("Role") for owner in given["Roles"]]
        elif one["Type"] == "AWS::IAM::ManagedPolicy":
            owners = [f"{_name(logical)} (a policy to attach)"]
        else:
            continue
        for owner in owners:
            yield from ((owner, statement) for statement in given["PolicyDocument"]["Statement"])


def _changes(statement: Mapping[str, Any]) -> Iterator[str]:
    """Yields what the statement lets change. Every function writes its own log, of which the page says so once."""
    actions = _listed(statement["Action"]) if statement.get("Effect") != "Deny" else []
    changing = [one for one in actions if not READS.match(one)]
    if not changing or ("Sid" not in statement and set(actions) == OWN_LOG):
        return
    conditions = _conditions(statement)
    places = conditions.get(LEADING) or [_short(_plain(one)) for one in _listed(statement["Resource"])]
    on = ", ".join(f"`{_plain(one)}`" for one in dict.fromkeys(map(_plain, _listed(places))))
    verbs = ", ".join(f"`{one}`" for one in changing)
    marked = ", ".join(words for key, words in MARKS.items() if key in conditions)
    yield f"{verbs} on {on}" + (f" ({marked})" if marked else "")


def _conditions(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of conditions by key; a key that must be absent, or present, has the word null behind it."""
    return {
        f"{key} null" if operator == "Null" else key: value
        for operator, of_operator in statement.get("Condition", {}).items()
        for key, value in of_operator.items()
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _short(resource: str) -> str:
    """Returns a resource without what is the same for all: partition, region and account."""
    text = re.sub(r"^arn:[^:]+:", "", resource)
    text = re.sub(r"^s3:::trainyard-([a-z]+)-[^/]*", r"\1", text)
    text = re.sub(r"^s3:::cdk-[^/]+-assets-[^/]+/.*", "an asset", text)
    parts = text.split(":", 3)
    return parts[3] if len(parts) == 4 and not text.startswith("<") else text


def _plain(value: Any) -> str:
    """Returns a value of a template as text, with references as their construct's id."""
    if isinstance(value, str):
        return value
    match value:
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(map(_plain, parts))
        case {"Ref": name} if str(name).startswith("AWS::"):
            return str(name).removeprefix("AWS::")
        case {"Ref": name}:
            return _name(name)
        case {"Fn::GetAtt": [name, *_]}:
            return _name(name)
        case {"Fn::ImportValue": name}:
            return _name(str(name).rpartition(":")[2])
        case {"Fn::Sub": text}:
            return str(text)
    return str(value)


def _name(logical: str) -> str:
    found = LOGICAL.match(logical)
    return found[3] if found else logical
