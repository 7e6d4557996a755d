"""The life of a stack: operations continue while the caller polls, resources are deleted in reverse order, and failures to
create or delete are reported as CloudFormation reports them.

moto does everything while the caller waits, deletes in any order, and forgets a stack whose deletion failed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from moto.cloudformation.models import ChangeSet, CloudFormationBackend, Event, Stack
from moto.cloudformation.parsing import OutputMap, ResourceMap

from localaws.model import listed
from localaws.services.custom_resources import is_custom

if TYPE_CHECKING:
    from localaws.server import LocalAws

KEPT = frozenset({"Retain", "RetainExceptOnCreate"})
"""Deletion policies that keep a resource when its stack is deleted ..."""
KEPT_OF_A_FAILED_CREATE = frozenset({"Retain"})
"""... and those that keep it when the stack's creation is rolled back."""
BEING_CREATED = frozenset({"CREATE_PENDING", "CREATE_IN_PROGRESS"})
AT_ONCE_S = 60.0
"""An operation that ends sooner than this spares a caller its polls every five seconds. CDK's command line waits 300 s
for an answer."""
Template = Mapping[str, Any]


def install(aws: LocalAws) -> None:
    aws.patch(Stack, "create_resources", _create_resources)
    aws.patch(Stack, "outputs", _hide_while_created(Stack.outputs, None))
    aws.patch(Stack, "stack_resources", _hide_while_created(Stack.stack_resources, ()))
    aws.wrap(Stack, "update", _update_stack)
    aws.wrap(CloudFormationBackend, "_resolve_update_parameters", _resolve_update_parameters)
    aws.wrap(ChangeSet, "apply", _apply)
    aws.patch(CloudFormationBackend, "delete_stack", _delete_stack)
    aws.patch(ResourceMap, "delete", _delete_resources)


def _hide_while_created(shown: property, nothing: Any) -> property:
    """Shows nothing of a stack that is being created: moto makes a resource as soon as anybody reads it or an output of it, so a look would
    make it a second time beside the thread that creates the stack."""
    assert shown.fget is not None
    read = shown.fget
    return property(lambda stack: nothing if stack.status in BEING_CREATED else read(stack))


def _create_resources(stack: Any) -> None:
    stack.status = "CREATE_IN_PROGRESS"
    _operate(stack, lambda: _create(stack))


def _update_stack(update: Any, stack: Any, template: str, *given: Any, **named: Any) -> None:
    customs = _customs(stack.template_dict) or _customs(stack.parse_template(template))
    stack.status = "UPDATE_IN_PROGRESS"
    _operate(stack, lambda: _update(stack, lambda: update(stack, template, *given, **named)), customs=bool(customs))


def _resolve_update_parameters(
    original: Any, backend: Any, instance: Any, incoming_params: list[dict[str, Any]]
) -> Any:
    """Uses the default as the previous value of a parameter that nobody ever set; moto knows no previous value then, and fails."""
    given = instance.parameters
    known = [one for one in incoming_params if not one.get("UsePreviousValue") or one["ParameterKey"] in given]
    return original(backend, instance=instance, incoming_params=known)


def _apply(original: Any, change_set: Any) -> None:
    """Applies a change set while the caller waits, unless it contains a custom resource, which may take long."""
    if _customs(change_set.template_dict):
        raise NotImplementedError("a change set with a custom resource; `cdk deploy --method=direct` makes none")
    original(change_set)


def _operate(stack: Any, operation: Callable[[], None], *, customs: bool | None = None) -> None:
    """Operates while the caller waits, as moto does, unless a function takes part."""
    if not (_customs(stack.template_dict) if customs is None else customs):
        operation()
        return
    worker = threading.Thread(target=operation, name=f"stack-{stack.name}", daemon=True)
    worker.start()
    worker.join(AT_ONCE_S)


def _create(stack: Any) -> None:
    try:
        stack.resource_map.create(stack.template_dict)
    except Exception as problem:
        if not _customs(stack.template_dict):
            raise  # the caller of CreateStack waits and gets the error
        _tell(stack, "ROLLBACK_IN_PROGRESS", str(problem))
        _roll_back(stack)
        return
    stack.description = stack.template_dict.get("Description")
    stack.mark_creation_complete()


def _roll_back(stack: Any) -> None:
    stack.output_map = OutputMap(stack.resource_map, {}, stack.stack_id)
    try:
        _delete_resources(stack.resource_map, kept=KEPT_OF_A_FAILED_CREATE)
    except Exception as problem:
        _tell(stack, "ROLLBACK_FAILED", str(problem))
    else:
        _tell(stack, "ROLLBACK_COMPLETE", "")


def _update(stack: Any, update: Callable[[], None]) -> None:
    try:
        update()
    except Exception as problem:
        if not _customs(stack.template_dict):
            raise
        # A real update would roll back; a rehearsal only needs to report that it failed.
        _tell(stack, "UPDATE_FAILED", str(problem))


def _delete_stack(self: Any, name_or_stack_id: str) -> None:
    found = [one for one in list(self.stacks.values()) if name_or_stack_id in (one.name, one.stack_id)]
    for stack in found:
        if stack.status == "DELETE_IN_PROGRESS":
            continue
        _tell(stack, "DELETE_IN_PROGRESS", "User Initiated")
        if in_use := _in_use(self, stack):
            _tell(stack, "DELETE_FAILED", in_use)
        else:
            _operate(stack, partial(_delete, self, stack))


def _in_use(backend: Any, stack: Any) -> str:
    """Says why the stack cannot be deleted: another stack imports one of its exports. Empty if none does."""
    for export in stack.exports:
        for other in list(backend.stacks.values()):
            if other is not stack and export.name in _imported(other.template_dict):
                return f"Export {export.name} cannot be deleted as it is in use by {other.name}"
    return ""


def _imported(value: Any) -> Iterator[str]:
    """Names of the exports that a template, or a part of one, imports."""
    if isinstance(value, Mapping):
        if isinstance(name := value.get("Fn::ImportValue"), str):
            yield name
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _imported(one)


def _delete(backend: Any, stack: Any) -> None:
    exports = [export.name for export in stack.exports]
    stack.output_map = OutputMap(stack.resource_map, {}, stack.stack_id)
    try:
        stack.resource_map.delete()
    except NotDeleted as problem:
        for name, reason in problem.reasons.items():
            _happened(stack, name, "DELETE_FAILED", reason)
        _tell(stack, "DELETE_FAILED", str(problem))
        return
    _tell(stack, "DELETE_COMPLETE", "")
    backend.stacks.pop(stack.stack_id, None)
    backend.deleted_stacks[stack.stack_id] = stack
    for export in exports:
        backend.exports.pop(export, None)


class NotDeleted(Exception):
    """Some resources of a stack could not be deleted."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        """`reasons` says for each resource why it could not be deleted."""
        super().__init__(f"The following resource(s) failed to delete: [{', '.join(sorted(reasons))}].")
        self.reasons = reasons


def _delete_resources(resources: Any, kept: frozenset[str] = KEPT) -> None:
    """Deletes a resource before those that it names; what a remaining resource names, remains as well. Raises NotDeleted."""
    template = {"Resources": dict(resources._resource_json_map)}
    needed_by, reasons = _needed_by(template), dict[str, str]()
    # moto recreates a resource that is in its map and missing, so deleted resources must leave the map.
    resources._resource_json_map = left = dict(template["Resources"])
    for name in last_first(template):
        resource, properties = resources._parsed_resources.get(name), template["Resources"][name]
        if resource is None or properties.get("DeletionPolicy") in kept:
            del left[name]
        elif users := [one for one in needed_by[name] if one in reasons]:
            reasons[name] = f"{', '.join(users)} needs it"
        else:
            try:
                resources._delete_resource(resource, properties)
            except Exception as problem:
                reasons[name] = str(problem)
            else:
                del left[name], resources._parsed_resources[name]
    if reasons:
        raise NotDeleted(reasons)


def last_first(template: Template) -> Iterator[str]:
    """Yields the names of the resources, each after all resources that name it."""
    needed_by, done = _needed_by(template), set[str]()

    def visit(name: str) -> Iterator[str]:
        if name not in done:
            done.add(name)
            for user in needed_by[name]:
                yield from visit(user)
            yield name

    for name in template["Resources"]:
        yield from visit(name)


def _needed_by(template: Template) -> dict[str, list[str]]:
    """Returns, for each resource, the resources that name it."""
    found: dict[str, list[str]] = {name: [] for name in template["Resources"]}
    for name, resource in template["Resources"].items():
        for needed in _named(resource) & found.keys() - {name}:
            found[needed].append(name)
    return found


def _named(value: Any) -> set[str]:
    """Returns everything in a part of a template that may be a resource's name."""
    if isinstance(value, list):
        return {name for one in value for name in _named(one)}
    if not isinstance(value, Mapping):
        return set()
    found = {name for one in value.values() for name in _named(one)}
    found |= set(listed(value.get("DependsOn", [])))
    if isinstance(value.get("Ref"), str):
        found.add(value["Ref"])
    if "Fn::GetAtt" in value:
        found.add(str(listed(value["Fn::GetAtt"])[0]).partition(".")[0])
    if "Fn::Sub" in value:
        found |= set(re.findall(r"\$\{([A-Za-z0-9]+)", str(listed(value["Fn::Sub"])[0])))
    return found


def _customs(template: Template) -> list[str]:
    return [name for name, one in template.get("Resources", {}).items() if is_custom(one["Type"])]


def _tell(stack: Any, status: str, reason: str) -> None:
    """Sets the stack's status, and records the event."""
    stack.status, stack.stack_status_reason = status, reason or None
    _happened(stack, stack.name, status, reason)


def _happened(stack: Any, name: str, status: str, reason: str) -> None:
    resource = stack.resource_map._parsed_resources.get(name)
    event = Event(
        stack_id=stack.stack_id,
        stack_name=stack.name,
        logical_resource_id=name,
        physical_resource_id=str(getattr(resource, "physical_resource_id", stack.stack_id)),
        resource_type=getattr(resource, "cf_resource_type", "AWS::CloudFormation::Stack"),
        resource_status=status,
        resource_status_reason=reason or None,
        resource_properties=None,
    )
    stack.events.append(event)
