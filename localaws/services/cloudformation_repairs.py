"""Repairs types that moto's CloudFormation gets wrong: properties that it drops, and resources that it never deletes."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moto.awslambda.models import LayerVersion, Permission, get_backend
from moto.ec2.models import ec2_backends
from moto.ec2.models.elastic_ip_addresses import ElasticAddress
from moto.ec2.models.flow_logs import FlowLogs
from moto.ec2.models.internet_gateways import InternetGateway
from moto.ec2.models.nat_gateways import NatGateway
from moto.ec2.models.route_tables import Route, RouteTable
from moto.ec2.models.security_groups import SecurityGroup, SecurityGroupIngress
from moto.ec2.models.subnets import SubnetRouteTableAssociation
from moto.ec2.models.vpcs import VPCEndPoint
from moto.ec2.models.vpn_gateway import VPCGatewayAttachment
from moto.kms.models import KmsBackend
from moto.logs.models import LogGroup
from moto.s3.models import FakeBucket
from moto.ssm.models import SimpleSystemManagerBackend

from localaws.model import listed

if TYPE_CHECKING:
    from localaws.server import LocalAws

Properties = Mapping[str, Any]
Delete = Callable[[Any, Any], object]
"""Deletes a resource; takes the EC2 back end and the resource."""
ANY = "0.0.0.0/0"


def install(aws: LocalAws) -> None:
    aws.wrap(SimpleSystemManagerBackend, "put_parameter", _put_parameter)
    around_creation(aws, FakeBucket, _bucket)
    aws.wrap(FakeBucket, "get_permission", _get_permission)
    aws.wrap(LogGroup, "get_cfn_attribute", _get_log_group_attribute)
    around_creation(aws, SecurityGroup, _rules, seen=_without_rules)
    for model, delete in DELETE.items():
        aws.patch(model, "delete", _deleting(delete))
    aws.patch(LayerVersion, "delete", _delete_layer)
    aws.wrap(KmsBackend, "create_key", _create_key)


def _put_parameter(original: Any, *given: Any, **named: Any) -> Any:
    """AWS::SSM::Parameter has its tags as a map, which moto handles as a list."""
    if isinstance(named.get("tags"), Mapping):
        named["tags"] = [{"Key": key, "Value": value} for key, value in named["tags"].items()]
    return original(*given, **named)


def _create_key(original: Any, *given: Any, **named: Any) -> Any:
    """The API of KMS spells a key's tags TagKey and TagValue; a template spells them like all other tags."""
    tags = [
        {"TagKey": one.get("TagKey", one.get("Key")), "TagValue": one.get("TagValue", one.get("Value"))}
        for one in named.get("tags") or []
    ]
    return original(*given, **{**named, "tags": tags})


Complete = Callable[[Any, Any, Properties], None]
"""Completes a resource; takes the local AWS's clients in the region, the new resource and its properties."""
Seen = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Changes a template's resource."""


def around_creation(aws: LocalAws, model: Any, complete: Complete = lambda *_: None, *, seen: Seen = dict) -> None:
    """Calls `complete` after moto has made or changed a resource, of which moto sees only what `seen` returns."""

    def completed(original: Any, *given: Any, **named: Any) -> Any:
        call = inspect.signature(original).bind(*given, **named)
        resource, region = call.arguments["cloudformation_json"], call.arguments["region_name"]
        call.arguments["cloudformation_json"] = seen(resource)
        made = original(*call.args, **call.kwargs)
        complete(lambda service: aws.client(service, region), made, resource.get("Properties", {}))
        return made

    for name in ("create_from_cloudformation_json", "update_from_cloudformation_json"):
        aws.wrap(model, name, completed)


def _bucket(client: Any, bucket: Any, properties: Properties) -> None:
    """Sets a bucket's properties; moto only reads encryption and tags."""
    s3 = client("s3")
    if versioning := properties.get("VersioningConfiguration"):
        s3.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration=versioning)
    if block := properties.get("PublicAccessBlockConfiguration"):
        s3.put_public_access_block(Bucket=bucket.name, PublicAccessBlockConfiguration=block)
    if controls := properties.get("OwnershipControls"):
        s3.put_bucket_ownership_controls(Bucket=bucket.name, OwnershipControls=controls)
    if rules := properties.get("LifecycleConfiguration", {}).get("Rules"):
        configuration = {"Rules": [_lifecycle(number, rule) for number, rule in enumerate(rules, start=1)]}
        s3.put_bucket_lifecycle_configuration(Bucket=bucket.name, LifecycleConfiguration=configuration)


def _get_permission(original: Any, bucket: Any, action: str, resource: str) -> Any:
    """Keeps the conditions of bucket policies, which moto drops, so that "deny without TLS" would deny everything."""
    if bucket.policy is None:
        return original(bucket, action, resource)
    document = json.loads(bucket.policy)
    document["Statement"] = [one for one in listed(document["Statement"]) if "Condition" not in one]
    part = copy.copy(bucket)
    part.policy = json.dumps(document).encode() if document["Statement"] else None
    return original(part, action, resource)


def _get_log_group_attribute(original: Any, group: Any, attribute_name: str) -> Any:
    """Ends a log group's ARN with `:*`, as CloudFormation does; rights on its streams depend on it."""
    found = original(group, attribute_name)
    return f"{found}:*" if attribute_name == "Arn" and not found.endswith(":*") else found


def _lifecycle(number: int, rule: Properties) -> dict[str, Any]:
    """Converts a rule of a template to the API's form."""
    expiration = {
        "Days": rule.get("ExpirationInDays"),
        "Date": rule.get("ExpirationDate"),
        "ExpiredObjectDeleteMarker": rule.get("ExpiredObjectDeleteMarker"),
    }
    same = ("AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration", "Transitions")
    found = {name: rule[name] for name in same if name in rule}
    if kept := {name: value for name, value in expiration.items() if value is not None}:
        found["Expiration"] = kept
    return {
        "ID": rule.get("Id", f"rule-{number}"),
        "Status": rule["Status"],
        "Filter": {"Prefix": rule.get("Prefix", "")},
        **found,
    }


def _without_rules(resource: Properties) -> Properties:
    rules = ("SecurityGroupIngress", "SecurityGroupEgress")
    return {
        **resource,
        "Properties": {key: one for key, one in resource.get("Properties", {}).items() if key not in rules},
    }


def _rules(client: Any, group: Any, properties: Properties) -> None:
    """Sets a group's rules: moto drops outbound rules, fails on inbound ones without ports, and keeps "everything out" beside others."""
    ec2 = client("ec2")
    if rules := properties.get("SecurityGroupIngress"):
        ec2.authorize_security_group_ingress(GroupId=group.id, IpPermissions=[permission(rule) for rule in rules])
    if rules := properties.get("SecurityGroupEgress"):
        everything = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": ANY}]}
        ec2.revoke_security_group_egress(GroupId=group.id, IpPermissions=[everything])
        ec2.authorize_security_group_egress(GroupId=group.id, IpPermissions=[permission(rule) for rule in rules])


def permission(rule: Properties) -> dict[str, Any]:
    """Converts a rule of a template (inbound or outbound) to the API's form."""
    found: dict[str, Any] = {"IpProtocol": str(rule["IpProtocol"])}
    found |= {name: int(rule[name]) for name in ("FromPort", "ToPort") if name in rule}
    about = {"Description": rule["Description"]} if rule.get("Description") else {}
    if "CidrIp" in rule:
        found["IpRanges"] = [{"CidrIp": rule["CidrIp"], **about}]
    if "CidrIpv6" in rule:
        found["Ipv6Ranges"] = [{"CidrIpv6": rule["CidrIpv6"], **about}]
    for name in ("SourcePrefixListId", "DestinationPrefixListId"):
        if name in rule:
            found["PrefixListIds"] = [{"PrefixListId": rule[name], **about}]
    for name in ("SourceSecurityGroupId", "DestinationSecurityGroupId"):
        if name in rule:
            found["UserIdGroupPairs"] = [{"GroupId": rule[name], **about}]
    return found


def _deleting(delete: Delete) -> Callable[[Any, str, str], None]:
    def deleting(self: Any, account_id: str, region_name: str) -> None:
        delete(ec2_backends[account_id][region_name], self)

    return deleting


def _disassociate(backend: Any, association: Any) -> None:
    for table in backend.route_tables.values():
        for name, subnet in list(table._associations.items()):
            if subnet == association.subnet_id and table.id == association.route_table_id:
                del table._associations[name]


def _delete_nat(backend: Any, gateway: Any) -> None:
    """Deletes a NAT gateway with its interface, and releases its address."""
    backend.delete_nat_gateway(gateway.id)
    for address in backend.addresses:
        if address.eni is gateway._eni:
            address.eni = address.association_id = None
    backend.enis.pop(gateway._eni.id, None)


def _detach(backend: Any, attachment: Any) -> None:
    if attachment.gateway_id.startswith("igw-"):
        backend.detach_internet_gateway(attachment.gateway_id, attachment.vpc_id)
    else:
        backend.detach_vpn_gateway(attachment.gateway_id, attachment.vpc_id)


def _delete_endpoint(backend: Any, endpoint: Any) -> None:
    """Deletes a gateway endpoint's routes: moto looks for them by prefix list, and has stored them under another name."""
    for table in endpoint.route_table_ids or []:
        routes = backend.route_tables[table]._routes if table in backend.route_tables else {}
        for name, route in list(routes.items()):
            if route.vpc_endpoint_id == endpoint.id:
                del routes[name]
    for interface in endpoint.network_interface_ids or []:
        backend.enis.pop(interface, None)
    backend.vpc_end_points.pop(endpoint.id, None)


def _revoke(backend: Any, rule: Any) -> None:
    """Deletes a separate rule before its group, which the rule may name."""
    group = backend.get_security_group_from_id(rule.security_group.id)
    if group is not None:
        wanted = permission(rule.properties)
        pairs = {pair["GroupId"] for pair in wanted.get("UserIdGroupPairs", [])}
        group.ingress_rules = [
            one
            for one in group.ingress_rules
            if one.ip_protocol != wanted["IpProtocol"] or {pair.get("GroupId") for pair in one.source_groups} != pairs
        ]


DELETE: dict[Any, Delete] = {
    ElasticAddress: lambda backend, address: backend.release_address(allocation_id=address.allocation_id),
    FlowLogs: lambda backend, log: backend.delete_flow_logs([log.id]),
    InternetGateway: lambda backend, gateway: backend.delete_internet_gateway(gateway.id),
    NatGateway: _delete_nat,
    Permission: lambda _backend, _permission: None,  # deleted with its function
    Route: lambda _backend, route: route.route_table._routes.pop(route.id, None),
    RouteTable: lambda backend, table: backend.delete_route_table(table.id),
    SecurityGroupIngress: _revoke,
    SubnetRouteTableAssociation: _disassociate,
    VPCEndPoint: _delete_endpoint,
    VPCGatewayAttachment: _detach,
}
"""Without these a destroyed stack leaves its network behind, or fails with "VPC has dependencies"."""


def _delete_layer(self: Any, account_id: str, region_name: str) -> None:
    get_backend(account_id, region_name).delete_layer_version(self.name, self.version)
