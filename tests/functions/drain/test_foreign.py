"""Network interfaces of other things in a deployment's networks: a destroy names them before it ends or deletes anything."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from aws.network_facts import PlacedInterface
from contract import tags
from contract.errors import StillRunning
from drain.policy import LINES, NotDrained, refuse_foreign
from tests.builders import JOB
from tests.fakes.faults import Kind, Mishap
from tests.fakes.yard import home
from tests.functions.drain.draining import AGAIN_S, PATIENCE_S, Yard

OURS, THEIRS, NODES = "vpc-ours", "vpc-theirs", "sg-nodes"
MINE = [{"Key": tags.DEPLOYMENT, "Value": "yard"}]
MOUNT_TARGET = "EFS mount target for fs-1 (fsmt-1)"


def interface(description: str = "", *, groups: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    return {
        "NetworkInterfaceId": "eni-9",
        "SubnetId": "subnet-a",
        "VpcId": OURS,
        "InterfaceType": "interface",
        "Description": description,
        "Groups": [{"GroupId": one} for one in groups],
        "TagSet": [],
    } | changes


def hold(
    yard: Yard,
    *interfaces: dict[str, Any],
    vpcs: tuple[str, ...] = (OURS,),
    groups_in: str = OURS,
    gateways: tuple[dict[str, Any], ...] = (),
    endpoints: tuple[dict[str, Any], ...] = (),
) -> None:
    """The deployment has a network and a group of nodes, and these interfaces are shown for them. NAT gateways and endpoints are those
    with the deployment's tag: they have an interface each, or several."""
    home(yard.aws).described = {
        "DescribeVpcs": {"Vpcs": [{"VpcId": one} for one in vpcs]},
        "DescribeSecurityGroups": {"SecurityGroups": [{"GroupId": NODES, "VpcId": groups_in}]},
        "DescribeNetworkInterfaces": {"NetworkInterfaces": list(interfaces)},
        "DescribeNatGateways": {"NatGateways": list(gateways)},
        "DescribeVpcEndpoints": {"VpcEndpoints": list(endpoints)},
    }


def gateway(*interfaces: str) -> dict[str, Any]:
    return {"NatGatewayAddresses": [{"NetworkInterfaceId": one} for one in interfaces]}


def endpoint(*interfaces: str) -> dict[str, Any]:
    return {"VpcEndpointId": "vpce-1", "NetworkInterfaceIds": list(interfaces)}


NAT = interface("Interface for NAT Gateway nat-1", InterfaceType="nat_gateway")
ENDPOINT = interface("VPC Endpoint Interface vpce-1", InterfaceType="vpc_endpoint", groups=(NODES,))
TASK = interface("arn:aws:ecs:eu-central-1:1:attachment/1", groups=(NODES,))
FOREIGN = {
    "a NAT gateway of others": NAT,
    "an endpoint of others that uses our group": ENDPOINT,
    "a directory": interface("AWS created network interface for directory d-1", groups=(NODES,)),
    "a database": interface("RDSNetworkInterface", groups=(NODES,)),
    "what only looks like a task": interface("AWS Lambda VPC ENI f:attachment/1", groups=(NODES,)),
    "a mount target of EFS": interface(MOUNT_TARGET),
    "a file system": interface("Created By Amazon FSx", groups=(NODES,)),
    "a load balancer": interface("ELB app/web/50dc6c495c0c9188", InterfaceType="load_balancer"),
    "a function": interface("AWS Lambda VPC ENI-other-1", InterfaceType="lambda", groups=(NODES,)),
    "an endpoint of others": interface(
        "VPC Endpoint Interface vpce-1", InterfaceType="vpc_endpoint", groups=("sg-theirs",)
    ),
    "a task of others": interface("arn:aws:ecs:eu-central-1:1:attachment/1", groups=("sg-theirs",)),
    "another deployment": interface("x", TagSet=[{"Key": tags.DEPLOYMENT, "Value": "yard-2"}]),
    "an instance": interface(Attachment={"InstanceId": "i-theirs"}),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_others_put_into_the_network_is_named_and_nothing_is_ended(yard: Yard, what: str) -> None:
    yard.train()
    hold(yard, FOREIGN[what])
    answer = yard.destroy()
    assert answer["Status"] == "FAILED"
    words = FOREIGN[what]["Description"] or "without a description, attached to i-theirs"
    assert f"- eni-9 in eu-central-1, subnet-a: {words}" in answer["Reason"]
    assert "Remove what they belong to, then destroy again." in answer["Reason"]
    assert len(yard.left()) == JOB.nodes
    assert yard.aws.states.executions.known[JOB.execution].status == "RUNNING"
    assert yard.closed()


OWN: dict[str, dict[str, Any]] = {
    "a node": {"interface": interface(TagSet=MINE)},
    "a NAT gateway": {"interface": NAT, "gateways": (gateway("eni-8"), gateway("eni-7", "eni-9"))},
    "an endpoint": {"interface": ENDPOINT, "endpoints": ({"VpcEndpointId": "vpce-s3"}, endpoint("eni-7", "eni-9"))},
}


@pytest.mark.parametrize("what", OWN)
def test_what_the_deployment_put_there_keeps_no_destroy_back(yard: Yard, what: str) -> None:
    own = dict(OWN[what])
    hold(yard, own.pop("interface"), **own)
    assert yard.destroy()["Status"] == "SUCCESS"


DATABASE = interface("RDSNetworkInterface", groups=("sg-database",))


def hold_database(yard: Yard, stack: str, found: dict[str, Any]) -> None:
    hold(yard, found)
    of_stack = {"Key": "aws:cloudformation:stack-name", "Value": stack}
    group = {"GroupId": "sg-database", "VpcId": OURS, "Tags": [*MINE, of_stack]}
    home(yard.aws).described["DescribeSecurityGroups"]["SecurityGroups"].append(group)


def test_the_catalogues_database_keeps_no_destroy_back(yard: Yard) -> None:
    """Its stack is deleted before the network."""
    hold_database(yard, "yard-catalogue", DATABASE)
    assert yard.destroy()["Status"] == "SUCCESS"


@pytest.mark.parametrize(
    ("stack", "found"),
    [
        ("yard-region-eu-central-1", DATABASE),
        ("other-catalogue", DATABASE),
        ("yard-catalogue", interface("RDSNetworkInterface", groups=(NODES,))),
        ("yard-catalogue", interface("ELB app/x", groups=("sg-database",))),
    ],
)
def test_a_database_of_others_keeps_the_network_from_a_destroy(yard: Yard, stack: str, found: dict[str, Any]) -> None:
    hold_database(yard, stack, found)
    assert yard.destroy()["Status"] == "FAILED"


MACHINE_OF = {"Key": "eks:eks-cluster-name"}
API = "Amazon EKS yard-kubernetes"
FUNCTION = "AWS Lambda VPC ENI-yard-cluster-0123"


@pytest.mark.parametrize(
    "found",
    [
        interface(TagSet=[{**MACHINE_OF, "Value": "yard-kubernetes"}]),
        interface(API, groups=("sg-database",)),
        interface(FUNCTION, groups=("sg-database",)),
    ],
)
def test_what_the_cluster_of_kubernetes_has_there_keeps_no_destroy_back(yard: Yard, found: dict[str, Any]) -> None:
    """Its stack is deleted before the network."""
    hold_database(yard, "yard-kubernetes", found)
    assert yard.destroy()["Status"] == "SUCCESS"


@pytest.mark.parametrize(
    ("stack", "found"),
    [
        ("yard-kubernetes", interface(TagSet=[{**MACHINE_OF, "Value": "lab"}])),
        ("yard-kubernetes", interface(API, groups=(NODES,))),
        ("yard-kubernetes", interface("Amazon EKS lab", groups=("sg-database",))),
        ("other-kubernetes", interface(FUNCTION, groups=("sg-database",))),
    ],
)
def test_a_cluster_of_others_keeps_the_network_from_a_destroy(yard: Yard, stack: str, found: dict[str, Any]) -> None:
    hold_database(yard, stack, found)
    assert yard.destroy()["Status"] == "FAILED"


def test_gateways_and_endpoints_are_ours_by_the_deployments_tag_alone(yard: Yard) -> None:
    hold(yard, NAT, ENDPOINT)
    yard.destroy()
    asked = {call.operation: call.params for call in yard.aws.calls}
    ours = [{"Name": f"tag:{tags.DEPLOYMENT}", "Values": ["yard"]}]
    assert asked["DescribeNatGateways"]["Filter"] == ours
    assert asked["DescribeVpcEndpoints"]["Filters"] == ours


@pytest.mark.parametrize("operation", ["DescribeNatGateways", "DescribeVpcEndpoints"])
@pytest.mark.parametrize("fault", [Kind.DENIED, Kind.ERROR, Kind.UNREACHABLE])
def test_where_nobody_says_whose_a_gateway_is_nothing_is_drained(yard: Yard, operation: str, fault: Kind) -> None:
    hold(yard, NAT, ENDPOINT, gateways=(gateway("eni-9"),), endpoints=(endpoint("eni-9"),))
    outcome = yard.run_drain(None, Mishap(f"ec2:{operation}", times=inf, fault=fault))
    assert outcome.error == StillRunning.__name__
    assert "network interfaces in eu-central-1 could not be listed" in outcome.cause


def test_a_child_of_a_grid_is_waited_for_until_its_interface_is_gone(yard: Yard) -> None:
    """Whether a task of Fargate is the deployment's, its interface does not say: ours end with their grids, and then it is gone."""
    hold(yard, TASK)
    outcome = yard.run_drain(None)
    assert outcome.error == StillRunning.__name__
    assert (
        "- network interface eni-9 of a Fargate task is left in eu-central-1, subnet-a: arn:aws:ecs:" in outcome.cause
    )
    hold(yard)
    yard.aws.clock.run(AGAIN_S * 10)
    assert yard.destroy()["Status"] == "SUCCESS"


def test_a_task_of_others_in_our_group_is_named_and_keeps_the_network_from_a_destroy(yard: Yard) -> None:
    hold(yard, TASK)
    yard.again_s = PATIENCE_S / 3
    answer = yard.destroy()
    assert answer["Status"] == "FAILED"
    assert (
        "- network interface eni-9 of a Fargate task is left in eu-central-1, subnet-a: arn:aws:ecs:"
        in answer["Reason"]
    )
    assert yard.closed()


def test_in_a_network_of_others_only_what_uses_our_groups_is_asked_for(yard: Yard) -> None:
    hold(yard, interface(MOUNT_TARGET, groups=(NODES,), VpcId=THEIRS), vpcs=(), groups_in=THEIRS)
    assert MOUNT_TARGET in yard.destroy()["Reason"]
    (asked,) = {str(call.params["Filters"]) for call in yard.aws.calls if call.operation == "DescribeNetworkInterfaces"}
    assert asked == str([{"Name": "group-id", "Values": [NODES]}])


def test_a_deployment_without_networks_asks_for_no_interface(yard: Yard) -> None:
    assert yard.destroy()["Status"] == "SUCCESS"
    assert [call for call in yard.aws.calls if call.operation == "DescribeNetworkInterfaces"] == []


@pytest.mark.parametrize("fault", [Kind.DENIED, Kind.ERROR, Kind.UNREACHABLE])
def test_a_region_whose_interfaces_cannot_be_read_is_not_drained(yard: Yard, fault: Kind) -> None:
    hold(yard)
    outcome = yard.run_drain(None, Mishap("ec2:DescribeNetworkInterfaces", times=inf, fault=fault))
    assert outcome.error == StillRunning.__name__
    assert "network interfaces in eu-central-1 could not be listed" in outcome.cause


def test_many_interfaces_are_named_up_to_what_cloudformation_shows() -> None:
    every = [
        PlacedInterface(
            id=f"eni-{number}",
            region="r",
            subnet="s",
            description="x" * 500,
            instance="",
            tagged=False,
            in_our_group=False,
        )
        for number in range(100)
    ]
    with pytest.raises(NotDrained) as refused:
        refuse_foreign(every, "yard")
    assert f"- and {100 - LINES} more" in str(refused.value)
    assert len(str(refused.value)) < 4096
