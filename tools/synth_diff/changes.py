"""What another template of a stack changes, as CloudFormation's own kinds, and what CloudFormation would refuse of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tools.synth_diff.registry import WORST, Update, find_name, find_stateful, find_update, is_deleted_first
from tools.synth_diff.rights import RightChanges, compare_rights, read_rights
from tools.synth_diff.values import ValueChange, describe_value, find_differences, find_references, rename, to_text

Template = Mapping[str, Any]
COMPARED = ("Properties", "DependsOn", "DeletionPolicy", "UpdateReplacePolicy", "Condition")
"""What makes two resources equal but for their logical ids."""
SNAPSHOT_BY_DEFAULT = "AWS::RDS::DBCluster"
"""Alone among our types it leaves a snapshot when its template says nothing."""


class Kind(str, Enum):
    """What CloudFormation does with a resource."""

    REPLACED = "replaced"
    MAY_BE_REPLACED = "may be replaced"
    REMOVED = "removed"
    ADDED = "added"
    UPDATED = "updated in place"
    UNKNOWN = "updated, and no schema says how"
    SETTINGS = "untouched: how CloudFormation treats it changes"


OF_UPDATE = {
    Update.REPLACED: Kind.REPLACED,
    Update.MAY_BE_REPLACED: Kind.MAY_BE_REPLACED,
    Update.IN_PLACE: Kind.UPDATED,
    Update.UNKNOWN: Kind.UNKNOWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """What becomes of one resource."""

    kind: Kind
    type: str
    logical_id: str
    new_id: str = ""
    """The logical id of the equal resource that takes its place, if it is replaced only because its id changes."""
    values: tuple[ValueChange, ...] = ()
    """What changes of it; paths begin below `Properties`, those of other attributes with their own name."""
    why: str = ""
    """Why it may be replaced although nothing of it changes."""
    loses: str = ""
    """What becomes of the data that it holds, if it holds some and is not kept."""
    refused: str = ""
    """Why CloudFormation refuses this, if it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackChange:
    """What becomes of one stack. A stack that only one of both trees has is `added`, or `gone`."""

    added: bool = False
    gone: bool = False
    resources: tuple[ResourceChange, ...] = ()
    others: tuple[ValueChange, ...] = ()
    """Outputs, parameters, conditions and whatever else a template has; paths begin with the section."""
    rights: RightChanges = field(default_factory=RightChanges)
    refused: tuple[str, ...] = ()
    """Why CloudFormation refuses the update, apart from what single resources say."""

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.gone or self.resources or self.others)


def compare_stacks(before: Mapping[str, Template], after: Mapping[str, Template]) -> dict[str, StackChange]:
    """Returns what changes of each stack of a deployment that is not equal, by name."""
    found = dict[str, StackChange]()
    for stack in sorted(before.keys() | after.keys()):
        if stack not in after:
            found[stack] = StackChange(gone=True)
        elif stack not in before:
            found[stack] = _of_new_stack(after[stack])
        elif not (change := _of_stack(stack, before, after[stack])).is_empty:
            found[stack] = change
    return found


def _of_new_stack(template: Template) -> StackChange:
    resources = template.get("Resources", {})
    added = [ResourceChange(kind=Kind.ADDED, type=one["Type"], logical_id=name) for name, one in resources.items()]
    rights = compare_rights(set(), read_rights(resources))
    return StackChange(added=True, resources=tuple(sorted(added, key=_order)), rights=rights)


def _of_stack(stack: str, deployment: Mapping[str, Template], after: Template) -> StackChange:
    before = deployment[stack]
    old, new = before.get("Resources", {}), after.get("Resources", {})
    renamed = find_renamed(old, new)
    resources = _find_changes(old, new, renamed)
    others = (
        find_differences(before.get(section), after.get(section), (section,))
        for section in sorted((before.keys() | after.keys()) - {"Resources"})
    )
    canonical = {renamed.get(name, name): one for name, one in rename(old, renamed).items()}
    return StackChange(
        resources=tuple(sorted(resources, key=_order)),
        others=tuple(one for section in others for one in section),
        rights=compare_rights(read_rights(canonical), read_rights(new)),
        refused=tuple(_find_exports_in_use(stack, deployment, after, resources)),
    )


def _order(change: ResourceChange) -> tuple[int, str, str]:
    return list(Kind).index(change.kind), change.type, change.logical_id


def find_renamed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Returns old to new logical ids of resources that are equal but for the id, and for references to others of them."""
    renamed = dict[str, str]()
    while True:
        gone = {name: one for name, one in old.items() if name not in new and name not in renamed}
        come = {name: one for name, one in new.items() if name not in old and name not in renamed.values()}
        by_content = dict[str, list[str]]()
        for name, resource in sorted(come.items()):
            by_content.setdefault(_describe_content(resource, {}), []).append(name)
        found = dict[str, str]()
        for name, resource in sorted(gone.items()):
            if equal := by_content.get(_describe_content(resource, renamed)):
                found[name] = equal.pop(0)
        if not found:
            return renamed
        renamed |= found


def _describe_content(resource: Mapping[str, Any], renamed: Mapping[str, str]) -> str:
    content = {name: resource[name] for name in COMPARED if name in resource}
    return f"{resource['Type']} {describe_value(rename(content, renamed))}"


def _find_changes(old: Mapping[str, Any], new: Mapping[str, Any], renamed: Mapping[str, str]) -> list[ResourceChange]:
    changes = [_of_renamed(old[name], new[other], name, other) for name, other in renamed.items()]
    for name in old.keys() - new.keys() - renamed.keys():
        kind = old[name]["Type"]
        changes.append(
            ResourceChange(kind=Kind.REMOVED, type=kind, logical_id=name, loses=_find_loss(old[name], "DeletionPolicy"))
        )
    for name in new.keys() - old.keys() - set(renamed.values()):
        changes.append(ResourceChange(kind=Kind.ADDED, type=new[name]["Type"], logical_id=name))
    for name in old.keys() & new.keys():
        if change := _of_resource(name, old[name], new[name]):
            changes.append(change)
    return _propagate(changes, old, new)


def _of_renamed(before: Mapping[str, Any], after: Mapping[str, Any], name: str, other: str) -> ResourceChange:
    return ResourceChange(
        kind=Kind.REPLACED,
        type=before["Type"],
        logical_id=name,
        new_id=other,
        loses=_find_loss(before, "DeletionPolicy"),
        # CloudFormation creates what is new before it deletes anything, whatever the type.
        refused=_find_conflict(before, after),
    )


def _of_resource(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> ResourceChange | None:
    kind = after["Type"]
    if before["Type"] != kind:
        return ResourceChange(
            kind=Kind.REPLACED,
            type=kind,
            logical_id=name,
            loses=_find_loss(before, "DeletionPolicy"),
            refused=f"its type was {before['Type']}, and the type of a logical id never changes",
        )
    values = tuple(find_differences(before.get("Properties", {}), after.get("Properties", {})))
    attributes = tuple(
        change
        for attribute in sorted((before.keys() | after.keys()) - {"Type", "Properties"})
        for change in find_differences(before.get(attribute), after.get(attribute), (attribute,))
    )
    if not values and not attributes:
        return None
    updates = [find_update(kind, one.path, (one.before, one.after)) for one in values]
    worst = min(updates, key=WORST.index, default=None)
    may_go = worst in (Update.REPLACED, Update.MAY_BE_REPLACED)
    return ResourceChange(
        kind=OF_UPDATE[worst] if worst else Kind.SETTINGS,
        type=kind,
        logical_id=name,
        values=values + attributes,
        loses=_find_loss(after, "UpdateReplacePolicy") if may_go else _find_later_loss(before, after),
        refused=_find_conflict(before, after) if worst is Update.REPLACED and not is_deleted_first(kind) else "",
    )


def _propagate(
    changes: Sequence[ResourceChange], old: Mapping[str, Any], new: Mapping[str, Any]
) -> list[ResourceChange]:
    """Adds the resources that may be replaced because they get, in a property that only a new one can get, a value of such a resource."""
    found = {one.logical_id: one for one in changes}
    ahead = [one.logical_id for one in changes if one.kind in (Kind.REPLACED, Kind.MAY_BE_REPLACED) and not one.new_id]
    while ahead:
        source = ahead.pop(0)
        for name in sorted(old.keys() & new.keys()):
            known = found.get(name)
            if known and known.kind in (Kind.REPLACED, Kind.MAY_BE_REPLACED):
                continue
            path = _find_fixed_reference(new[name], source)
            if path is None:
                continue
            found[name] = ResourceChange(
                kind=Kind.MAY_BE_REPLACED,
                type=new[name]["Type"],
                logical_id=name,
                values=known.values if known else (),
                why=f"its {path} is that of {source}",
                loses=_find_loss(new[name], "UpdateReplacePolicy"),
            )
            ahead.append(name)
    return list(found.values())


def _find_fixed_reference(resource: Mapping[str, Any], name: str) -> str | None:
    """Returns the property by which the resource depends on that one for ever."""
    for path, referred in find_references(resource.get("Properties", {})):
        if referred == name and find_update(resource["Type"], path, ()) is Update.REPLACED:
            return path[0]
    return None


def _find_loss(resource: Mapping[str, Any], attribute: str) -> str:
    """Returns what becomes of the resource's data when it is removed (`DeletionPolicy`), or replaced (`UpdateReplacePolicy`)."""
    kind = resource["Type"]
    if kind not in find_stateful():
        return ""
    default = "Snapshot" if kind == SNAPSHOT_BY_DEFAULT and attribute == "DeletionPolicy" else "Delete"
    policy = resource.get(attribute, default)
    return f"{attribute} {policy}" if policy in ("Delete", "Snapshot") else ""


def _find_later_loss(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Returns what will become of data that was kept whatever happened to the stack, if that has changed."""
    later = _find_loss(after, "DeletionPolicy") or _find_loss(after, "UpdateReplacePolicy")
    kept = not (_find_loss(before, "DeletionPolicy") or _find_loss(before, "UpdateReplacePolicy"))
    return f"from now on {later}" if later and kept else ""


def _find_conflict(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Returns why the new resource cannot be created beside the old one."""
    field = find_name(after["Type"])
    names = [to_text(one.get("Properties", {}).get(field)) for one in (before, after)]
    if field is None or names[0] is None or names[0] != names[1]:
        return ""
    return f"{field} {names[0]} is taken until the old one is deleted"


def _find_exports_in_use(
    stack: str, deployment: Mapping[str, Template], after: Template, changes: Sequence[ResourceChange]
) -> Iterator[str]:
    """Yields why outputs that other stacks import cannot change: CloudFormation keeps their values as long as they are imported."""
    new = {one["Export"]["Name"]: one["Value"] for one in after.get("Outputs", {}).values() if "Export" in one}
    replaced = {one.logical_id for one in changes if one.kind is Kind.REPLACED}
    for output in deployment[stack].get("Outputs", {}).values():
        if "Export" not in output:
            continue
        name, value = output["Export"]["Name"], output["Value"]
        changed = new.get(name) != value or any(one in replaced for _, one in find_references(value))
        users = [other for other, template in deployment.items() if other != stack and _imports(template, name)]
        if changed and users:
            what = "changes" if name in new else "goes"
            yield f"the export {name} {what}, which is imported by {', '.join(sorted(users))}"


def _imports(value: Any, name: str) -> bool:
    if isinstance(value, list):
        return any(_imports(one, name) for one in value)
    if not isinstance(value, dict):
        return False
    return value.get("Fn::ImportValue") == name or any(_imports(one, name) for one in value.values())
