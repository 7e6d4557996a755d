"""Which rights a template gives, one action at one resource at a time, and which of them another template has more or less of.

Read are all policy documents, whatever resource they are in, permissions of functions, policies of AWS that roles have, boundaries of
permissions, and the rules of security groups. A right that another one covers (`s3:Get*` covers `s3:GetObject`) is none more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.synth_diff.values import describe_value, is_policy, to_text

IDENTITIES = ("Roles", "Users", "Groups")
PEERS = {
    "SecurityGroupIngress": ("CidrIp", "CidrIpv6", "SourceSecurityGroupId", "SourcePrefixListId"),
    "SecurityGroupEgress": ("CidrIp", "CidrIpv6", "DestinationSecurityGroupId", "DestinationPrefixListId"),
}
ANYWHERE = "0.0.0.0/0"
SEND = "send"
"""The verb of a rule of a security group."""


Conditions = frozenset[tuple[str, frozenset[str]]]
"""Operator and key, and the values of which one must fit; all of them must hold."""
ALL_BUT = "all but "


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One action of one statement at one resource."""

    who: str
    action: str
    resource: str
    conditions: Conditions = field(default=frozenset(), compare=False)
    shown: str = ""
    """The conditions as text, which tells rights apart and gives them an order."""
    denies: bool = False

    def covers(self, other: Right) -> bool:
        """Returns whether whoever has this right has the other one too. A denial never covers what is allowed, nor the reverse."""
        return (
            self.denies is other.denies
            and self.who in ("*", other.who)
            and _matches(self.action.lower(), other.action.lower())
            and _matches(self.resource, other.resource)
            and all(any(_allows(one, another) for another in other.conditions) for one in self.conditions)
        )


@dataclass(frozen=True, slots=True, order=True)
class RightChange:
    """Actions that a principal may do at a resource and could not before, or the reverse."""

    who: str
    resource: str
    actions: tuple[str, ...]
    conditions: str
    denies: bool

    def describe(self) -> str:
        verb = "must not" if self.denies else "may"
        condition = f" if {self.conditions}" if self.conditions else ""
        preposition = "to" if self.actions[0].startswith(SEND) else "on"
        return f"{_bare(self.who)} {verb} {', '.join(self.actions)} {preposition} {_bare(self.resource)}{condition}"


@dataclass(frozen=True, slots=True)
class RightChanges:
    """A denial that goes is a change that widens; its sentence says so with a `no longer`."""

    gained: tuple[RightChange, ...] = ()
    lost: tuple[RightChange, ...] = ()

    @property
    def wider(self) -> list[str]:
        return [one.describe() for one in self.gained if not one.denies] + [
            f"no longer: {one.describe()}" for one in self.lost if one.denies
        ]

    @property
    def narrower(self) -> list[str]:
        return [f"no longer: {one.describe()}" for one in self.lost if not one.denies] + [
            one.describe() for one in self.gained if one.denies
        ]


def compare_rights(before: Collection[Right], after: Collection[Right]) -> RightChanges:
    """Returns the rights that the other side does not cover."""
    return RightChanges(_find_uncovered(after, before), _find_uncovered(before, after))


def read_rights(resources: Mapping[str, Mapping[str, Any]]) -> set[Right]:
    """Returns all rights that the resources of a template give."""
    found = set[Right]()
    for name, resource in resources.items():
        properties, reference = resource.get("Properties", {}), f"${{{name}}}"
        for document in _find_policies(properties):
            for statement in document["Statement"]:
                found.update(_of_statement(statement, _find_owners(properties) or [reference], reference))
        found.update(_of_managed(properties, reference))
        match resource["Type"]:
            case "AWS::Lambda::Permission":
                found.add(_of_permission(properties))
            case "AWS::EC2::SecurityGroup":
                found.update(_of_group(reference, properties, resources))
            case "AWS::EC2::SecurityGroupIngress" | "AWS::EC2::SecurityGroupEgress" as kind:
                found.add(_of_rule(kind.rpartition("::")[2], properties, _name_group(properties)))
    return found


def _find_uncovered(rights: Collection[Right], others: Collection[Right]) -> tuple[RightChange, ...]:
    grouped = defaultdict[tuple[str, str, str, bool], list[str]](list)
    for one in sorted(set(rights) - set(others)):
        if not any(other.covers(one) for other in others):
            grouped[one.who, one.resource, one.shown, one.denies].append(one.action)
    return tuple(
        RightChange(who, resource, tuple(actions), shown, denies)
        for (who, resource, shown, denies), actions in sorted(grouped.items())
    )


def _matches(pattern: str, text: str) -> bool:
    """Returns whether the pattern stands for everything that the text stands for; both may have IAM's wildcards."""
    if pattern == text or pattern.startswith(ALL_BUT):
        return pattern == text
    parts = (".*" if one == "*" else "[^*]" if one == "?" else re.escape(one) for one in re.split(r"([*?])", pattern))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _allows(one: tuple[str, frozenset[str]], another: tuple[str, frozenset[str]]) -> bool:
    """Returns whether a condition holds whenever the other one does."""
    (key, values), (key_of_other, values_of_other) = one, another
    operator = key.partition(" ")[0]
    if key != key_of_other or operator in ("Null", "Bool"):
        return one == another
    return values <= values_of_other if "Not" in operator else values >= values_of_other


def _find_policies(value: Any) -> Iterator[Mapping[str, Any]]:
    if is_policy(value):
        yield value
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _find_policies(one)


def _find_owners(properties: Mapping[str, Any]) -> list[str]:
    return [_text(one) for field_ in IDENTITIES for one in properties.get(field_, [])]


def _of_statement(statement: Mapping[str, Any], owners: list[str], carrier: str) -> Iterator[Right]:
    """Without principals a statement is of those that the policy is attached to; without a resource it is about what carries it."""
    conditions, shown = _read_conditions(statement.get("Condition", {}))
    trusts = "Principal" in statement or "NotPrincipal" in statement
    for resource in _listed(statement, "Resource") or [carrier]:
        # The policy of a key is about that key: it names none.
        named = carrier if trusts and resource == "*" else resource
        for action in _listed(statement, "Action"):
            for who in _list_principals(statement) if trusts else owners:
                yield Right(who, action, named, conditions, shown, statement["Effect"] == "Deny")


def _read_conditions(conditions: Mapping[str, Mapping[str, Any]]) -> tuple[Conditions, str]:
    pairs = {
        f"{operator} {key}": frozenset(map(_text, values if isinstance(values, list) else [values]))
        for operator, keys in conditions.items()
        for key, values in keys.items()
    }
    shown = " and ".join(f"{key} {' or '.join(sorted(values))}" for key, values in sorted(pairs.items()))
    return frozenset(pairs.items()), shown


def _list_principals(statement: Mapping[str, Any]) -> list[str]:
    if "NotPrincipal" in statement:
        return [f"{ALL_BUT}{describe_value(statement['NotPrincipal'])}"]
    principal = statement["Principal"]
    if not isinstance(principal, dict) or to_text(principal) is not None:
        return [_text(principal)]
    return sorted(_text(one) for names in principal.values() for one in (names if isinstance(names, list) else [names]))


def _listed(statement: Mapping[str, Any], name: str) -> list[str]:
    """Returns actions or resources; `NotAction` and its like are one value."""
    if f"Not{name}" in statement:
        return [f"{ALL_BUT}{describe_value(statement[f'Not{name}'])}"]
    values = statement.get(name, [])
    return [_text(one) for one in (values if isinstance(values, list) else [values])]


def _of_managed(properties: Mapping[str, Any], role: str) -> Iterator[Right]:
    for policy in properties.get("ManagedPolicyArns", []):
        yield Right(role, "do all that is allowed by", _text(policy))
    if boundary := properties.get("PermissionsBoundary"):
        yield Right(role, "do what is not allowed by", _text(boundary), denies=True)


def _of_permission(properties: Mapping[str, Any]) -> Right:
    source = {name: value for name, value in properties.items() if name.startswith(("Source", "Event"))}
    conditions, shown = _read_conditions({"StringEquals": source} if source else {})
    return Right(
        _text(properties["Principal"]), properties["Action"], _text(properties["FunctionName"]), conditions, shown
    )


def _of_group(group: str, properties: Mapping[str, Any], resources: Mapping[str, Mapping[str, Any]]) -> Iterator[Right]:
    """A group without any rule for what leaves it gets one of EC2 that allows all."""
    for kind in PEERS:
        for rule in properties.get(kind, []):
            yield _of_rule(kind, rule, group)
    apart = (one["Properties"] for one in resources.values() if one["Type"] == "AWS::EC2::SecurityGroupEgress")
    if not properties.get("SecurityGroupEgress") and not any(_name_group(one) == group for one in apart):
        yield _of_rule("SecurityGroupEgress", {"IpProtocol": "-1", "CidrIp": ANYWHERE}, group)


def _name_group(rule: Mapping[str, Any]) -> str:
    return _text(rule["GroupId"]).replace(".GroupId}", "}")


def _of_rule(kind: str, rule: Mapping[str, Any], group: str) -> Right:
    peer = next((_text(rule[name]) for name in PEERS[kind] if name in rule), "no peer").replace(".GroupId}", "}")
    ports = f" {rule['FromPort']}-{rule['ToPort']}" if "FromPort" in rule else ""
    protocol = "all traffic" if str(rule["IpProtocol"]) == "-1" else f"{rule['IpProtocol']}{ports}"
    if kind == "SecurityGroupIngress":
        return Right(peer, f"{SEND} {protocol}", f"{group} (ingress)")
    return Right(f"{group} (egress)", f"{SEND} {protocol}", peer)


def _text(value: Any) -> str:
    text = to_text(value)
    return describe_value(value) if text is None else text


def _bare(text: str) -> str:
    """Returns the name alone of what begins with one reference and has no other."""
    return re.sub(r"^\$\{([\w.]+)\}(?= |$)", r"\1", text)
