"""CloudFormation types that moto ignores; each is made with the public API of its service, as CloudFormation itself does."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from moto.cloudformation import parsing
from moto.core.common_models import CloudFormationModel

from localaws.services import cloudformation_repairs, cloudformation_stacks, custom_resources

if TYPE_CHECKING:
    from localaws.server import LocalAws

Properties = Mapping[str, Any]
Client = Callable[[str], Any]
"""Returns a client of a service in the stack's region, by the service's name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How a resource is created and deleted."""

    create: Callable[[Client, str, Properties], str]
    """Clients, a generated name and properties: returns the physical id."""
    delete: Callable[[Client, str, Properties], object]
    """Clients, the physical id and the properties that it was made with: deletes the resource."""
    attributes: Callable[[str, str, str], dict[str, str]] = lambda *_: {}
    """Physical id, account and region: returns what Fn::GetAtt finds."""
    change: Callable[[Client, str, Properties, Properties], object] | None = None
    """Clients, the physical id, old and new properties: changes the resource, which keeps its id. None replaces it."""


def _placement_group(client: Client, name: str, properties: Properties) -> str:
    tags = [{"ResourceType": "placement-group", "Tags": properties["Tags"]}] if properties.get("Tags") else []
    client("ec2").create_placement_group(
        GroupName=name, Strategy=properties.get("Strategy", "cluster"), TagSpecifications=tags
    )
    return name


def _bucket_policy(client: Client, _: str, properties: Properties) -> str:
    bucket = str(properties["Bucket"])
    client("s3").put_bucket_policy(Bucket=bucket, Policy=json.dumps(properties["PolicyDocument"]))
    return bucket


def _no_bucket_policy(client: Client, bucket: str, _: Properties) -> None:
    client("s3").delete_bucket_policy(Bucket=bucket)


def _egress(client: Client, name: str, properties: Properties) -> str:
    client("ec2").authorize_security_group_egress(
        GroupId=properties["GroupId"], IpPermissions=[cloudformation_repairs.permission(properties)]
    )
    return name


def _no_egress(client: Client, _: str, properties: Properties) -> None:
    with suppress(ClientError):  # the group may already be gone, and its rules with it
        client("ec2").revoke_security_group_egress(
            GroupId=properties["GroupId"], IpPermissions=[cloudformation_repairs.permission(properties)]
        )


def _topic_policy(client: Client, name: str, properties: Properties) -> str:
    for topic in properties["Topics"]:
        client("sns").set_topic_attributes(
            TopicArn=topic, AttributeName="Policy", AttributeValue=json.dumps(properties["PolicyDocument"])
        )
    return name


def _queue_policy(client: Client, name: str, properties: Properties) -> str:
    for queue in properties["Queues"]:
        client("sqs").set_queue_attributes(
            QueueUrl=queue, Attributes={"Policy": json.dumps(properties["PolicyDocument"])}
        )
    return name


def _alarm(client: Client, name: str, properties: Properties) -> str:
    alarm = {"AlarmName": name, **properties}
    client("cloudwatch").put_metric_alarm(**alarm)
    return str(alarm["AlarmName"])


def _schedule(client: Client, name: str, properties: Properties) -> str:
    schedule = {"Name": name[-64:], **properties}
    client("scheduler").create_schedule(**schedule)
    return str(schedule["Name"])


def _no_schedule(client: Client, name: str, properties: Properties) -> None:
    client("scheduler").delete_schedule(Name=name, GroupName=properties.get("GroupName", "default"))


def _invoke_config(client: Client, name: str, properties: Properties) -> str:
    client("lambda").put_function_event_invoke_config(**properties)
    return name


def _no_invoke_config(client: Client, _: str, properties: Properties) -> None:
    with suppress(
        ClientError
    ):  # moto has no qualifiers here: the first deletion takes those of the function's aliases too
        client("lambda").delete_function_event_invoke_config(FunctionName=properties["FunctionName"])


def _alias(client: Client, _: str, properties: Properties) -> str:
    return str(client("lambda").create_alias(**properties)["AliasArn"])


def _no_alias(client: Client, _: str, properties: Properties) -> None:
    with suppress(ClientError):  # the function may already be gone, and its aliases with it
        client("lambda").delete_alias(FunctionName=properties["FunctionName"], Name=properties["Name"])


def _nothing(*_: object) -> None:
    """Does nothing: the resource goes with the one it belongs to."""


OWN: dict[str, Kind] = {
    "AWS::CDK::Metadata": Kind(lambda _client, name, _properties: name, _nothing),
    "AWS::CloudWatch::Alarm": Kind(
        _alarm,
        lambda client, name, _: client("cloudwatch").delete_alarms(AlarmNames=[name]),
        lambda name, account, region: {"Arn": f"arn:aws:cloudwatch:{region}:{account}:alarm:{name}"},
    ),
    "AWS::EC2::PlacementGroup": Kind(
        _placement_group,
        lambda client, name, _: client("ec2").delete_placement_group(GroupName=name),
        lambda name, _account, _region: {"GroupName": name},
    ),
    "AWS::EC2::SecurityGroupEgress": Kind(_egress, _no_egress),
    "AWS::Lambda::Alias": Kind(_alias, _no_alias),
    "AWS::Lambda::EventInvokeConfig": Kind(_invoke_config, _no_invoke_config),
    "AWS::S3::BucketPolicy": Kind(_bucket_policy, _no_bucket_policy),
    "AWS::SNS::TopicPolicy": Kind(_topic_policy, _nothing),
    "AWS::SQS::QueuePolicy": Kind(_queue_policy, _nothing),
    "AWS::Scheduler::Schedule": Kind(
        _schedule,
        _no_schedule,
        lambda name, account, region: {"Arn": f"arn:aws:scheduler:{region}:{account}:schedule/default/{name}"},
    ),
}
KINDS: dict[str, Kind] = {}
_aws: list[LocalAws] = []


class Resource:
    """What moto's parser holds of a resource of one of the KINDS; a subclass per kind, because moto finds them by class."""

    kind = ""

    def __init__(self, identity: str, properties: Properties, account: str, region: str) -> None:
        self.physical_resource_id = identity
        self.properties, self.account, self.region = properties, account, region

    @staticmethod
    def cloudformation_name_type() -> str:
        return ""

    @classmethod
    def cloudformation_type(cls) -> str:
        return cls.kind

    @classmethod
    def has_cfn_attr(cls, attr: str) -> bool:
        return attr in KINDS[cls.kind].attributes("", "", "")

    def get_cfn_attribute(self, attribute_name: str) -> str:
        return KINDS[self.kind].attributes(self.physical_resource_id, self.account, self.region)[attribute_name]

    @classmethod
    def create_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **_: Any
    ) -> Resource:
        properties = cloudformation_json.get("Properties", {})
        identity = KINDS[cls.kind].create(_client(region_name), resource_name, properties)
        return cls(identity, properties, account_id, region_name)

    @classmethod
    def update_from_cloudformation_json(
        cls,
        original_resource: Resource,
        new_resource_name: str,
        cloudformation_json: Any,
        account_id: str,
        region_name: str,
    ) -> Resource:
        """Changes the resource if its kind can, or replaces it by a new one, under a new name if nobody gave one."""
        if change := KINDS[cls.kind].change:
            properties = cloudformation_json.get("Properties", {})
            change(
                _client(region_name), original_resource.physical_resource_id, original_resource.properties, properties
            )
            original_resource.properties = properties
            return original_resource
        original_resource.delete(account_id, region_name)
        return cls.create_from_cloudformation_json(new_resource_name, cloudformation_json, account_id, region_name)

    def delete(self, account_id: str, region_name: str) -> None:
        del account_id
        KINDS[self.kind].delete(_client(region_name), self.physical_resource_id, self.properties)


def _client(region: str) -> Client:
    aws = _aws[-1]
    return lambda service: aws.client(service, region)


def models(kinds: Mapping[str, Kind]) -> list[type]:
    """Adds kinds; returns their classes, which are direct subclasses of CloudFormationModel, because moto looks no deeper. moto finds a
    class as long as something refers to it."""
    KINDS.update(kinds)
    return [type(kind.replace("::", ""), (Resource, CloudFormationModel), {"kind": kind}) for kind in kinds]


MODELS = models(OWN)


def install(aws: LocalAws) -> None:
    """Teaches moto's CloudFormation the KINDS, and repairs its handling of other types."""
    _aws[:] = [aws]
    forget_models()
    cloudformation_repairs.install(aws)
    custom_resources.install(aws)
    cloudformation_stacks.install(aws)


def as_the_api_has_it(value: Any, own: Collection[str] = (), spelt: Mapping[str, str] | None = None) -> Any:
    """Converts a template's names, which begin with capitals. `own` are maps with names of the user; `spelt` are other spellings."""
    if isinstance(value, Mapping):
        return {
            (spelt or {}).get(name) or name[0].lower() + name[1:]: dict(one)
            if name in own and isinstance(one, Mapping)
            else as_the_api_has_it(one, own, spelt)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [as_the_api_has_it(one, own, spelt) for one in value]
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def forget_models() -> None:
    """Clears moto's cache of models, which it fills at the first template, so that it finds later ones."""
    for remembered in (parsing.get_model_list, parsing.get_model_map, parsing.get_name_type_map):
        remembered.cache_clear()
