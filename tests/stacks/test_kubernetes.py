"""With `kubernetes` lines of grids have a cluster: its API in the network alone, few rights, and nothing of it where it is off."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract import names
from contract.environments import LineCluster
from contract.kubernetes_objects import OPERATOR_DIGEST, build_node_pool, build_objects
from contract.pod_network import build_policy_controller
from stacks.kubernetes import KubernetesExports
from stacks.parts.assembled import NotSetUp
from stacks.parts.operator_manifest import read_operator_manifest
from stacks.parts.pod_cluster import VERSION
from stacks.settings import BadSettings, Settings
from tests.stacks.synth import artifacts, function, logical_id, only, plain, resources, rights, variables
from tools.configurations import CLUSTER, OPERATOR
from tools.synthesis import CONTEXT, ROOT, Synthesised, masked, synthesise_once

LAB = {"cluster": "lab"}
HOME = "eu-central-1"


@pytest.fixture(scope="module")
def clustered() -> Synthesised:
    """A deployment with a cluster of its own."""
    return synthesise_once(kubernetes=CLUSTER)


@pytest.fixture(scope="module")
def lab() -> Synthesised:
    """A deployment on a cluster that the account has."""
    return synthesise_once(kubernetes=LAB)


@pytest.fixture(scope="module")
def template(clustered: Synthesised) -> dict[str, Any]:
    return clustered.template("kubernetes")


def refusal(**changes: object) -> str:
    with pytest.raises(BadSettings) as refused:
        Settings.parse({**CONTEXT["trainyard"], "kubernetes": changes})
    return str(refused.value)


def applied(template: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of Kubernetes that a deploy applies."""
    found = resources(template, "Custom::AWSCDK-EKS-KubernetesResource").values()
    return [one for resource in found for one in json.loads(plain(resource["Manifest"]))]


# The switch


def test_without_the_switch_there_is_no_stack_no_right_and_no_word_of_it(deployment: Synthesised) -> None:
    assert "trainyard-kubernetes" not in deployment.stacks
    words = ("ubernetes", "eks:", "AWS::EKS", "CLUSTER_FUNCTION")
    found = {stack: json.dumps(one["Resources"]) for stack, one in deployment.stacks.items()}
    assert [(stack, word) for stack, text in found.items() for word in words if word in text] == []


def test_the_switch_changes_nothing_of_what_stands_but_those_who_ask_the_cluster(
    deployment: Synthesised, lab: Synthesised
) -> None:
    changed = {
        stack
        for stack, one in deployment.stacks.items()
        for name, resource in one["Resources"].items()
        if masked(json.dumps(resource)) != masked(json.dumps(lab.stacks[stack]["Resources"].get(name)))
    }
    assert changed <= {"trainyard-grid", "trainyard-reaper", "trainyard-dashboard", "trainyard-search"}


def test_it_stands_before_the_grid_and_goes_before_the_network(clustered: Synthesised) -> None:
    found = artifacts(clustered)
    assert "trainyard-kubernetes" in found["trainyard-grid"]["dependencies"]
    assert {"trainyard-foundation", f"trainyard-region-{HOME}"} <= set(found["trainyard-kubernetes"]["dependencies"])


def test_a_cluster_that_is_there_is_not_made_and_no_kubectl_comes_along(lab: Synthesised) -> None:
    template = lab.template("kubernetes")
    assert resources(template, "AWS::EKS::Cluster") == {}
    assert (
        len(resources(template, "AWS::Lambda::LayerVersion")) == len(resources(template, "AWS::Lambda::Function")) == 1
    )
    assert only(template, "AWS::EKS::AccessEntry")["ClusterName"] == "lab"


# The cluster


def test_the_api_is_reached_from_the_network_alone(template: dict[str, Any]) -> None:
    access = only(template, "AWS::EKS::Cluster")["ResourcesVpcConfig"]
    assert (access["EndpointPrivateAccess"], access["EndpointPublicAccess"]) == (True, False)


def test_whoever_deploys_may_do_nothing_in_the_cluster_and_what_is_done_is_logged(template: dict[str, Any]) -> None:
    cluster = only(template, "AWS::EKS::Cluster")
    assert cluster["AccessConfig"] == {
        "AuthenticationMode": "API",
        "BootstrapClusterCreatorAdminPermissions": False,
    }
    logged = {one["Type"] for one in cluster["Logging"]["ClusterLogging"]["EnabledTypes"]}
    assert logged == {"api", "audit", "authenticator", "controllerManager", "scheduler"}


def test_machines_come_by_auto_mode_and_the_operator_has_small_ones(template: dict[str, Any]) -> None:
    cluster = only(template, "AWS::EKS::Cluster")
    assert cluster["ComputeConfig"]["Enabled"] is True
    assert cluster["ComputeConfig"]["NodePools"] == ["system"]
    (operator,) = (one for one in applied(template) if one["kind"] == "Deployment")
    assert operator["spec"]["template"]["spec"]["nodeSelector"] == {"karpenter.sh/nodepool": "system"}


def test_namespace_quota_account_and_pool_are_applied_after_the_operator(template: dict[str, Any]) -> None:
    kinds = [one["kind"] for one in applied(template)]
    assert {"Namespace", "ResourceQuota", "ServiceAccount", "NodePool", "CustomResourceDefinition"} <= set(kinds)
    (quota,) = (one for one in applied(template) if one["kind"] == "ResourceQuota")
    assert quota["spec"]["hard"] == {"pods": "8"}


def test_a_cluster_of_our_own_carries_policies_of_the_network_out(template: dict[str, Any]) -> None:
    (switch,) = (one for one in applied(template) if one["kind"] == "ConfigMap")
    assert (switch["metadata"]["namespace"], switch["metadata"]["name"]) == ("kube-system", "amazon-vpc-cni")
    assert switch["data"] == {"enable-network-policy-controller": "true"}


def test_pods_have_the_rights_of_trainings_by_an_agent_of_this_cluster_alone(clustered: Synthesised) -> None:
    template = clustered.template("kubernetes")
    (role,) = (
        one
        for one in resources(template, "AWS::IAM::Role").values()
        if one.get("RoleName") == names.pod_role("trainyard", HOME)
    )
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert set(trust["Action"]) == {"sts:AssumeRole", "sts:TagSession"}
    assert plain(trust["Condition"]["ArnEquals"]["aws:SourceArn"]).endswith(":cluster/trainyard-kubernetes")
    pods = {one.name for one in rights(template, "PodRole")}
    trainings = {one.name for one in rights(clustered.template("grid"), "TrainingRole")}
    assert pods <= trainings


# Who speaks with it


def test_children_and_the_function_are_members_of_a_group_of_their_own(lab: Synthesised) -> None:
    child = only(lab.template("grid"), "AWS::EKS::AccessEntry")
    one = only(lab.template("kubernetes"), "AWS::EKS::AccessEntry")
    assert (child["KubernetesGroups"], one["KubernetesGroups"]) == (
        ["trainyard-lines-children"],
        ["trainyard-lines-functions"],
    )
    assert "AccessPolicies" not in child.keys() | one.keys()


def test_no_group_may_do_more_than_its_members_need() -> None:
    rules = {
        (one["kind"], one["metadata"]["name"]): [
            (rule["resources"], rule["verbs"], rule.get("resourceNames")) for rule in one["rules"]
        ]
        for one in build_objects("yard", 8)
        if "rules" in one
    }
    making = ["create", "get", "patch"]
    assert rules == {
        ("Role", "children"): [
            (["mpijobs"], making, None),
            (["pods"], ["get", "list"], None),
            (["resourcequotas"], ["get"], ["machines"]),
            (["networkpolicies"], ["create"], None),
        ],
        ("Role", "functions"): [(["mpijobs"], [*making, "list", "delete"], None), (["pods"], ["get", "list"], None)],
        ("ClusterRole", "yard-lines-functions"): [(["nodes"], ["list"], None)],
    }


def test_a_child_alone_notes_what_it_submitted_and_no_pod_may(lab: Synthesised) -> None:
    (note,) = [one for one in rights(lab.template("grid"), "Child") if one.name == "NoteSubmissions"]
    assert (note.actions, note.resources[0].endswith("/grids/*/submitted/*")) == (("s3:PutObject",), True)
    pods = list(rights(lab.template("kubernetes"), "PodRole"))
    assert pods
    assert not [one for one in pods if any("submitted" in str(resource) for resource in one.resources)]
    assert not [one for one in pods if "s3:PutObject" in one.actions and any("home" in str(at) for at in one.resources)]


def test_functions_without_a_network_ask_the_one_that_has_one(lab: Synthesised) -> None:
    name = names.cluster_function("trainyard")
    for stack, package in (("reaper", "reaper"), ("reaper", "drain")):
        assert variables(function(lab.template(stack), package))["TRAINYARD_CLUSTER_FUNCTION"] == name
    for stack, role in (("reaper", "Reaper"), ("reaper", "Drain"), ("grid", "GridCollect"), ("grid", "GridCleanup")):
        found = [one for one in rights(lab.template(stack), role) if one.name == "AskTheCluster"]
        assert found, role
        assert all(one.resources[0].endswith(f":function:{name}") for one in found)
    network = function(lab.template("kubernetes"), "cluster_api")["VpcConfig"]
    group = logical_id(lab.template("kubernetes"), "AWS::EC2::SecurityGroup", "FunctionGroup")
    assert len(network["SubnetIds"]) == 3
    assert network["SecurityGroupIds"] == [{"Fn::GetAtt": [group, "GroupId"]}]
    assert "VpcConfig" not in function(lab.template("grid"), "grid_collect")


def test_plan_knows_the_cluster_and_the_port_on_which_rank_0_listens(lab: Synthesised) -> None:
    known = json.loads(plain(variables(function(lab.template("grid"), "planner"))["TRAINYARD_KUBERNETES"]))
    assert (known["name"], known["port"]) == ("lab", CONTEXT["trainyard"].get("master_port", 29500))
    rights: Any = SimpleNamespace(name="lab", most_nodes=4)
    exports = KubernetesExports(rights=rights, security_group=None, master_port=23456)
    assert exports.line_cluster == LineCluster(name="lab", most_nodes=4, port=23456)


def test_a_machine_without_a_job_is_an_alarm_after_half_an_hour(lab: Synthesised) -> None:
    found = resources(lab.template("kubernetes"), "AWS::CloudWatch::Alarm").values()
    alarms = {one["AlarmName"]: one for one in found}
    idle = alarms["trainyard-kubernetes-idle"]
    assert (idle["DatapointsToAlarm"], idle["Period"], idle["Statistic"]) == (6, 300, "Maximum")
    assert alarms["trainyard-kubernetes-silent"]["TreatMissingData"] == "breaching"


# The operator's manifest


def test_descriptions_of_a_definition_are_cut_and_its_properties_stay() -> None:
    body = (ROOT / OPERATOR).read_bytes()
    found = read_operator_manifest(ROOT / OPERATOR, hashlib.sha256(body).hexdigest())
    (definition,) = (one for one in found if one["kind"] == "CustomResourceDefinition")
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema == {"type": "object", "properties": {"description": {"type": "string"}}}


def test_a_manifest_of_another_digest_is_refused_with_both() -> None:
    with pytest.raises(NotSetUp) as refused:
        read_operator_manifest(ROOT / OPERATOR, OPERATOR_DIGEST)
    assert CLUSTER["operator_digest"] in str(refused.value)
    assert f"kubernetes.operator_digest is {OPERATOR_DIGEST}" in str(refused.value)


def test_a_manifest_that_is_not_there_is_refused_with_where_it_is_from(tmp_path: Path) -> None:
    with pytest.raises(NotSetUp, match=r"cannot be read.*kubeflow/mpi-operator"):
        read_operator_manifest(tmp_path / "operator.yaml", OPERATOR_DIGEST)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cluster": "new"}, "kubernetes.operator_manifest is missing; allowed: the name of the file deploy/v2beta1/"),
        ({"cluster": "lab", "operator_manifest": "a.yaml"}, "kubernetes.operator_manifest is for a new cluster"),
        ({"operator_manifest": "a.yaml"}, "kubernetes.operator_manifest is for a new cluster"),
        ({"max_nodes": 0}, "kubernetes.max_nodes"),
        ({"nodes": 1}, "kubernetes.nodes is not a setting"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(changes: dict[str, object], words: str) -> None:
    assert words in refusal(**changes)


def test_a_machine_with_pods_is_taken_away_by_its_age_alone() -> None:
    spec = build_node_pool("yard")["spec"]
    assert spec["disruption"]["consolidationPolicy"] == "WhenEmpty"
    allowed = {why: one["nodes"] for one in spec["disruption"]["budgets"] for why in one["reasons"]}
    assert allowed == {"Drifted": "0", "Underutilized": "0", "Empty": "100%"}
    # Auto Mode gives pods a day more, and a machine 21 days in all.
    assert spec["template"]["spec"]["expireAfter"] == f"{20 * 24}h"


def refused_network(region: str, **network: object) -> str:
    """What is said of a new cluster in this home region; empty where it may be."""
    given = {
        **CONTEXT["trainyard"],
        "home_region": region,
        "regions": [{"region": region, **({} if "vpc" in network else {"cidr": "10.0.0.0/16"}), **network}],
        "kubernetes": CLUSTER,
    }
    try:
        Settings.parse(given)
    except BadSettings as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize(
    ("region", "without"), [("us-east-1", "use1-az3"), ("us-west-1", "usw1-az2"), ("ca-central-1", "cac1-az3")]
)
def test_where_eks_leaves_out_a_zone_a_new_cluster_needs_zones_by_name(region: str, without: str) -> None:
    words = refused_network(region)
    assert f"kubernetes.cluster is new, and regions names no zones of {region}" in words
    assert f"the id {without}; allowed: 2 zones or more by name" in words
    assert refused_network(region, zones=[f"{region}a", f"{region}c"]) == ""
    assert (
        refused_network(
            region,
            vpc="vpc-0123456789abcdef0",
            subnets={f"{region}a": "subnet-0123456789abcdef0", f"{region}b": "subnet-0123456789abcdef1"},
        )
        == ""
    )


@pytest.mark.parametrize(
    "network",
    [
        {"zones": ["eu-central-1a"]},
        {"vpc": "vpc-0123456789abcdef0", "subnets": {"eu-central-1a": "subnet-0123456789abcdef0"}},
    ],
)
def test_a_new_cluster_in_one_zone_is_refused(network: dict[str, object]) -> None:
    assert "nodes of eu-central-1 have 1 zone; allowed: 2 zones or more" in refused_network(HOME, **network)


def test_a_new_cluster_elsewhere_needs_no_zones_by_name() -> None:
    assert refused_network(HOME) == ""


@pytest.mark.parametrize("kubernetes", [{}, LAB])
def test_zones_are_free_where_no_cluster_is_made(kubernetes: dict[str, object]) -> None:
    given = {
        **CONTEXT["trainyard"],
        "home_region": "us-east-1",
        "regions": [{"region": "us-east-1", "cidr": "10.0.0.0/16"}],
        "kubernetes": kubernetes,
    }
    assert Settings.parse(given).home_region == "us-east-1"


def test_every_object_of_ours_is_labelled_as_the_deployments() -> None:
    for one in [*build_objects("yard", 8), build_node_pool("yard")]:
        assert one["metadata"]["labels"] == {"trainyard/deployment": "yard"}


def test_every_object_is_what_kubernetes_knows() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    for one in [*build_objects("yard", 8), build_policy_controller()]:
        kubernetes_validate.validate(one, VERSION, strict=True)
