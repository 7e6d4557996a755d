"""Stacks with the types that moto lacks deploy with what they ask for, and leave nothing behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto.ec2.models import ec2_backends

from localaws import server
from localaws.conditions import Conditions
from localaws.model import ACCOUNT
from localaws.server import LocalAws
from localaws.services import ec2

pytestmark = pytest.mark.rehearsal
REGION = "eu-central-1"
DENY = {
    "Effect": "Deny",
    "Principal": {"AWS": "*"},
    "Action": "s3:*",
    "Resource": "*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "GAPS", ())
        made = LocalAws(Conditions(), gaps=("ec2", "ssm", "cloudformation"), work=tmp_path_factory.mktemp("stacks"))
        with made:
            yield made
            ec2.machines().stop()


def resource(kind: str, policy: str = "Delete", **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "DeletionPolicy": policy, "Properties": properties}


def ref(name: str, attribute: str = "") -> dict[str, Any]:
    return {"Fn::GetAtt": [name, attribute]} if attribute else {"Ref": name}


NETWORK = {
    "Vpc": resource("EC2::VPC", CidrBlock="10.70.0.0/16"),
    "Subnet": resource("EC2::Subnet", VpcId=ref("Vpc"), CidrBlock="10.70.0.0/24", AvailabilityZone=f"{REGION}c"),
    "Table": resource("EC2::RouteTable", VpcId=ref("Vpc")),
    "Uses": resource("EC2::SubnetRouteTableAssociation", RouteTableId=ref("Table"), SubnetId=ref("Subnet")),
    "Way": resource("EC2::InternetGateway"),
    "Attached": resource("EC2::VPCGatewayAttachment", VpcId=ref("Vpc"), InternetGatewayId=ref("Way")),
    "Address": resource("EC2::EIP", Domain="vpc"),
    "Nat": resource("EC2::NatGateway", SubnetId=ref("Subnet"), AllocationId=ref("Address", "AllocationId")),
    "Out": resource("EC2::Route", RouteTableId=ref("Table"), DestinationCidrBlock="0.0.0.0/0", NatGatewayId=ref("Nat")),
    "Gate": resource(
        "EC2::VPCEndpoint",
        VpcId=ref("Vpc"),
        ServiceName=f"com.amazonaws.{REGION}.s3",
        VpcEndpointType="Gateway",
        RouteTableIds=[ref("Table")],
    ),
    "Group": resource(
        "EC2::SecurityGroup",
        VpcId=ref("Vpc"),
        GroupDescription="nodes",
        SecurityGroupEgress=[{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}],
    ),
    "In": resource(
        "EC2::SecurityGroupIngress", GroupId=ref("Group"), IpProtocol="-1", SourceSecurityGroupId=ref("Group")
    ),
    "Self": resource(
        "EC2::SecurityGroupEgress", GroupId=ref("Group"), IpProtocol="-1", DestinationSecurityGroupId=ref("Group")
    ),
    "Close": resource("EC2::PlacementGroup", Strategy="cluster"),
    "Place": resource(
        "SSM::Parameter", Name="/place", Type="String", Tags={"a": "b"}, Value={"Fn::Sub": "${Subnet} ${Close}"}
    ),
}
OTHERS = {
    "Bucket": resource(
        "S3::Bucket",
        "Retain",
        BucketName="kept",
        VersioningConfiguration={"Status": "Enabled"},
        LifecycleConfiguration={
            "Rules": [{"Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}}]
        },
    ),
    "TlsOnly": resource("S3::BucketPolicy", Bucket=ref("Bucket"), PolicyDocument={"Statement": [DENY]}),
    "About": resource("CDK::Metadata", Analytics="none"),
    "Alarm": resource(
        "CloudWatch::Alarm",
        MetricName="m",
        Namespace="n",
        Period=60,
        Statistic="Sum",
        Threshold=1,
        EvaluationPeriods=1,
        ComparisonOperator="LessThanThreshold",
    ),
    "Clock": resource(
        "Scheduler::Schedule",
        ScheduleExpression="rate(5 minutes)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={
            "Arn": "arn:aws:lambda:eu-central-1:123456789012:function:f",
            "RoleArn": "arn:aws:iam::123456789012:role/r",
        },
    ),
    "Topic": resource("SNS::Topic"),
    "TopicTlsOnly": resource("SNS::TopicPolicy", Topics=[ref("Topic")], PolicyDocument={"Statement": [DENY]}),
}


def deploy(aws: LocalAws, name: str, resources: dict[str, Any]) -> dict[str, str]:
    """Logical to physical ids."""
    cloudformation = aws.client("cloudformation", REGION)
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}))
    found = cloudformation.describe_stack_resources(StackName=name)["StackResources"]
    return {one["LogicalResourceId"]: one.get("PhysicalResourceId", "") for one in found}


def test_a_network_deploys_whole_and_goes_away_whole(aws: LocalAws) -> None:
    client = aws.client("ec2", REGION)
    vpcs = len(client.describe_vpcs()["Vpcs"])
    ids = deploy(aws, "network", NETWORK)
    subnet = client.describe_subnets(SubnetIds=[ids["Subnet"]])["Subnets"][0]
    assert subnet["AvailabilityZone"] == f"{REGION}c"
    group = client.describe_security_groups(GroupIds=[ids["Group"]])["SecurityGroups"][0]
    outward = [(one["IpProtocol"], one.get("FromPort")) for one in group["IpPermissionsEgress"]]
    assert sorted(outward, key=str) == [("-1", None), ("tcp", 443)]
    assert not any(one["IpProtocol"] == "-1" and one["IpRanges"] for one in group["IpPermissionsEgress"]), (
        "everything out is not what was asked for"
    )
    (close,) = client.describe_placement_groups()["PlacementGroups"]
    place = aws.client("ssm", REGION).get_parameter(Name="/place")["Parameter"]["Value"]
    assert place == f"{ids['Subnet']} {close['GroupName']}"

    aws.client("cloudformation", REGION).delete_stack(StackName="network")
    assert len(client.describe_vpcs()["Vpcs"]) == vpcs
    assert client.describe_placement_groups()["PlacementGroups"] == []
    assert client.describe_addresses()["Addresses"] == []
    assert ec2_backends[ACCOUNT][REGION].enis == {}
    assert client.describe_vpc_endpoints()["VpcEndpoints"] == []


def test_the_other_types_are_really_made_and_a_retained_bucket_stays(aws: LocalAws) -> None:
    deploy(aws, "others", OTHERS)
    s3, clock = aws.client("s3", REGION), aws.client("scheduler", REGION)
    assert json.loads(s3.get_bucket_policy(Bucket="kept")["Policy"])["Statement"] == [DENY]
    assert s3.get_bucket_versioning(Bucket="kept")["Status"] == "Enabled"
    assert s3.get_bucket_lifecycle_configuration(Bucket="kept")["Rules"][0]["Status"] == "Enabled"
    s3.put_object(Bucket="kept", Key="still", Body=b"allowed")
    assert len(clock.list_schedules()["Schedules"]) == 1
    assert len(aws.client("cloudwatch", REGION).describe_alarms()["MetricAlarms"]) == 1
    aws.client("cloudformation", REGION).delete_stack(StackName="others")
    assert clock.list_schedules()["Schedules"] == []
    assert aws.client("cloudwatch", REGION).describe_alarms()["MetricAlarms"] == []
    assert s3.get_object(Bucket="kept", Key="still")["Body"].read() == b"allowed"
