"""DescribeInstances, TerminateInstances and the tag calls as EC2 has them: late, in pages, all or nothing; the volumes' key."""

from __future__ import annotations

import copy
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import (
    EC2ClientError,
    InvalidInstanceIdError,
    InvalidParameterCombination,
    OperationNotPermitted4,
)
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.instances import InstanceBackend
from moto.ec2.responses.elastic_block_store import ElasticBlockStore
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.responses.tags import TagResponse
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, filter_dict_attribute_mapping, get_prefix
from moto.kms import kms_backends

from localaws.services.ec2_machines import Aws, Function, Machines, replace

MANAGED_KEY = "alias/aws/ebs"


def install(aws: Aws, machines: Machines) -> None:
    replace(aws, InstanceResponse, "describe_instances", lambda _: _describe(machines))
    replace(aws, InstanceBackend, "terminate_instances", lambda _: _terminate(machines))
    aws.patch(filter_dict_attribute_mapping, "iam-instance-profile.arn", "iam_instance_profile.Arn")
    replace(aws, TagResponse, "create_tags", lambda original: _create_tags(machines, original))
    replace(aws, TagResponse, "delete_tags", lambda original: _delete_tags(machines, original))
    aws.patch(ElasticBlockStore, "get_ebs_default_kms_key_id", _default_key)
    aws.patch(TaggedEC2Resource, "get_tags", _tags)


def _tags(self: Any) -> list[dict[str, str]]:
    """moto looks through the tags of all resources for those of one: DescribeInstances of 200 took six times as long."""
    tags = dict(self.ec2_backend.tags.get(self.id, {})) if self.id else {}
    kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(self.id), "") if tags else ""
    return [{"resource_id": self.id, "key": key, "value": value, "resource_type": kind} for key, value in tags.items()]


def _describe(machines: Machines) -> Function:
    """New instances are unknown for a moment; a page has few reservations, and says so only by its NextToken."""

    def describe_instances(self: Any) -> Any:
        self.error_on_dryrun()
        wanted, most = self._get_param("InstanceIds", []), self._get_param("MaxResults")
        if wanted and most:
            raise InvalidParameterCombination("The parameter instancesSet cannot be used with the parameter maxResults")
        with machines.lock:
            known = {instance.id for instance in self.ec2_backend.all_instances() if not machines.hidden(instance.id)}
            if unknown := [instance for instance in wanted if instance not in known]:
                raise InvalidInstanceIdError(unknown)
            found = self.ec2_backend.describe_instances(filters=self._filters_from_querystring())
            order = list(self.ec2_backend.reservations)
        found = [_only(reservation, known & set(wanted) if wanted else known) for reservation in found]
        found = [reservation for reservation in found if reservation.instances]
        if wanted:
            return ActionResult({"Reservations": found})
        if token := self._get_param("NextToken"):
            found = [reservation for reservation in found if order.index(reservation.id) > order.index(token)]
        size = min(int(most or 1000), machines.aws.conditions.page_size)
        more = found[size - 1].id if len(found) > size else None
        return ActionResult({"Reservations": found[:size], "NextToken": more})

    return describe_instances


def _only(reservation: Any, known: set[str]) -> Any:
    part = copy.copy(reservation)
    part.instances = [instance for instance in reservation.instances if instance.id in known]
    return part


def _terminate(machines: Machines) -> Function:
    """One unknown or protected instance refuses the whole call."""

    def terminate_instances(self: Any, instance_ids: list[str]) -> list[tuple[Any, Any]]:
        if not instance_ids:
            raise InvalidParameterCombination("No instances specified")
        with machines.lock:
            if hidden := [instance for instance in instance_ids if machines.hidden(instance)]:
                raise InvalidInstanceIdError(hidden)
            records = self.get_multi_instances_by_id(instance_ids)
            for record in records:
                if record.disable_api_termination is True or _refused(machines, record.id):
                    raise OperationNotPermitted4(record.id)
            before = [(record, copy.copy(record._state)) for record in records]
        for record in records:
            machine = machines.get(record.id)
            if machine:
                machines.terminate(machine)
            else:  # made by something else than RunInstances
                record.terminate()
        return before

    return terminate_instances


def _refused(machines: Machines, instance: str) -> bool:
    """The fault `terminate-refused`: as if somebody had switched on the instance's termination protection."""
    conditions, machine = machines.aws.conditions, machines.get(instance)
    fault = conditions.now_under("terminate-refused")
    return fault is not None and machine is not None and fault.meets(machine.marks)


def _create_tags(machines: Machines, original: Function) -> Function:
    def create_tags(self: Any) -> Any:
        resources = self._get_param("Resources", [])
        if hidden := [resource for resource in resources if machines.hidden(resource)]:
            raise InvalidInstanceIdError(hidden)
        if any(machines.unknown_to_iam(resource) for resource in resources):
            raise EC2ClientError("UnauthorizedOperation", "You are not authorized to perform this operation.")
        answer = original(self)
        machines.tagged(resources, {tag["Key"]: tag.get("Value", "") for tag in self._get_param("Tags", [])})
        return answer

    return create_tags


def _delete_tags(machines: Machines, original: Function) -> Function:
    def delete_tags(self: Any) -> Any:
        answer = original(self)
        machines.untagged(self._get_param("Resources", []), [tag["Key"] for tag in self._get_param("Tags", [])])
        return answer

    return delete_tags


def _default_key(self: Any) -> Any:
    """AWS's own, by its alias, until somebody has set another one."""
    backend = self.ec2_backend
    key, keys = backend.default_kms_key_id, kms_backends[backend.account_id][backend.region_name]
    own = key and MANAGED_KEY not in keys.describe_key(key).aliases
    return ActionResult({"KmsKeyId": key if own else MANAGED_KEY})
