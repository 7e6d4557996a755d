"""The place-holder of a cluster: it takes what an API server takes, from whom EKS lets in, and refuses the rest by its place."""

from __future__ import annotations

import base64
import copy
import json
import ssl
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import pytest

from localaws.server import LocalAws
from localaws.services import kubernetes
from localaws.services.kubernetes_model import MERGE, KubernetesModel, build_pods
from localaws.services.kubernetes_schema import list_problems

POLICIES = "/apis/networking.k8s.io/v1/namespaces/lines/networkpolicies"
SPACE = "/apis/kubeflow.org/v2beta1/namespaces/lines/mpijobs"
ROLE = "arn:aws:iam::123456789012:role/member"
JOB: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {"name": "one", "namespace": "lines", "labels": {"a": "b"}},
    "spec": {
        "slotsPerWorker": 1,
        "runPolicy": {"cleanPodPolicy": "All", "suspend": False},
        "mpiReplicaSpecs": {
            name: {
                "replicas": count,
                "restartPolicy": "Never",
                "template": {"spec": {"containers": [{"name": "t", "image": "i"}]}},
            }
            for name, count in (("Launcher", 1), ("Worker", 2))
        },
    },
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The job with another value at a path of keys."""
    made = copy.deepcopy(JOB)
    *above, last = path.split(".")
    place: Any = made
    for key in above:
        place = place[key]
    place[last] = value
    return made


@pytest.fixture
def model() -> KubernetesModel:
    return KubernetesModel(lambda: 1_800_000_000.0)


def test_a_job_is_made_once_found_listed_by_its_labels_and_deleted(model: KubernetesModel) -> None:
    assert model.answer("POST", SPACE, JOB)[0] == 201
    assert model.answer("POST", SPACE, JOB)[0] == 409
    assert model.answer("GET", f"{SPACE}/one")[1]["metadata"]["creationTimestamp"] == "2027-01-15T08:00:00Z"
    assert len(model.answer("GET", f"{SPACE}?labelSelector=a%3Db")[1]["items"]) == 1
    assert model.answer("GET", f"{SPACE}?labelSelector=a%3Dc")[1]["items"] == []
    assert model.answer("DELETE", f"{SPACE}/one")[0] == 200
    assert model.answer("GET", f"{SPACE}/one")[0] == 404


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("a=b,!ended", ["open"]),
        ("ended", ["first", "second"]),
        ("a=b,ended,ended notin (2,3)", ["first"]),
        ("ended notin (1,2),a=b", ["open"]),
        ("a=c", []),
    ],
)
def test_a_selector_asks_for_labels_that_are_there_absent_or_unlike_others(
    model: KubernetesModel, selector: str, found: list[str]
) -> None:
    for name, labels in {"open": {}, "first": {"ended": "1"}, "second": {"ended": "2"}}.items():
        job = changed("metadata.labels", {"a": "b", **labels})
        job["metadata"]["name"] = name
        model.answer("POST", SPACE, job)
    items = model.answer("GET", f"{SPACE}?{urlencode({'labelSelector': selector})}")[1]["items"]
    assert [one["metadata"]["name"] for one in items] == found


def test_a_policy_is_made_once_and_goes_with_the_job_that_owns_it(model: KubernetesModel) -> None:
    uid = model.answer("POST", SPACE, JOB)[1]["metadata"]["uid"]
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "one", "uid": uid}
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "one", "ownerReferences": [owner]},
        "spec": {"podSelector": {"matchLabels": {}}, "policyTypes": ["Ingress"]},
    }
    assert [model.answer("POST", POLICIES, policy)[0] for _ in range(2)] == [201, 409]
    assert model.answer("POST", POLICIES, {**policy, "spec": {"podselector": {}}})[0] == 422
    model.answer("DELETE", f"{SPACE}/one")
    assert model.policies == {}


def test_a_list_comes_in_pages(model: KubernetesModel) -> None:
    for number in range(3):
        model.answer("POST", SPACE, changed("metadata.name", f"job-{number}"))
    page = model.answer("GET", f"{SPACE}?limit=2")[1]
    rest = model.answer("GET", f"{SPACE}?limit=2&continue={page['metadata']['continue']}")[1]
    assert (len(page["items"]), len(rest["items"]), rest["metadata"]["continue"]) == (2, 1, "")


def test_a_merge_changes_what_it_names_and_is_checked(model: KubernetesModel) -> None:
    model.answer("POST", SPACE, JOB)
    status, job = model.answer("PATCH", f"{SPACE}/one", {"spec": {"runPolicy": {"suspend": True}}}, MERGE)
    assert (status, job["spec"]["runPolicy"]) == (200, {"cleanPodPolicy": "All", "suspend": True})
    assert model.answer("PATCH", f"{SPACE}/one", {"spec": {"runPolicy": {"suspend": "yes"}}}, MERGE)[0] == 422
    assert model.answer("PATCH", f"{SPACE}/one", {}, "application/json")[0] == 415


def test_pods_are_by_rank_with_the_launcher_first() -> None:
    pods = list(build_pods(JOB))
    assert [one["metadata"]["name"] for one in pods] == ["one-launcher", "one-worker-0", "one-worker-1"]
    assert [one["metadata"]["labels"]["training.kubeflow.org/replica-index"] for one in pods] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("spec.slotsPerWorkers", 1, 'unknown field "spec.slotsPerWorkers"'),
        ("spec.slotsPerWorker", "1", "spec.slotsPerWorker: '1' is no int"),
        ("spec.slotsPerWorker", True, "spec.slotsPerWorker: True is no int"),
        ("spec.runPolicy.cleanPodPolicy", "Some", "spec.runPolicy.cleanPodPolicy: 'Some' is not one of"),
        ("spec.mpiReplicaSpecs.Worker.template.spec.containers", {}, "containers: is no list"),
        ("spec.mpiReplicaSpecs.Worker.replicas", 0, "must be greater than or equal to 1"),
        ("spec.mpiReplicaSpecs", {}, "must have Launcher replica spec"),
        ("metadata.name", "One", "metadata.name: One-worker-1 is no label of DNS"),
        ("metadata.name", "a" * 55, "is no label of DNS"),
        ("metadata.labels", {"a:b": "c"}, "metadata.labels: a:b=c is no label"),
    ],
)
def test_what_a_server_refuses_is_refused_by_its_place(path: str, value: Any, problem: str) -> None:
    assert any(problem in one for one in list_problems(changed(path, value)))


def test_a_good_job_has_no_problem() -> None:
    assert list_problems(JOB) == []


# Who speaks


@pytest.fixture
def cluster() -> Iterator[tuple[LocalAws, kubernetes.Cluster]]:
    with LocalAws(gaps=["kubernetes"]) as aws:
        made = kubernetes.begin(aws, "lab", "eu-central-1")
        made.members[ROLE] = ("group",)
        yield aws, made


def token_of(aws: LocalAws, *, role: str = ROLE, cluster: str = "lab") -> str:
    sts = aws.client("sts", "eu-central-1", role=role)

    def name_cluster(**given: Any) -> None:
        given["request"].headers["x-k8s-aws-id"] = cluster

    sts.meta.events.register("before-sign.sts.GetCallerIdentity", name_cluster)
    address = sts.generate_presigned_url("get_caller_identity", ExpiresIn=60, HttpMethod="GET")
    sts.meta.events.unregister("before-sign.sts.GetCallerIdentity", name_cluster)
    return "k8s-aws-v1." + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")


def ask(aws: LocalAws, token: str) -> int:
    found = aws.client("eks", "eu-central-1").describe_cluster(name="lab")["cluster"]
    trusted = ssl.create_default_context(cadata=base64.b64decode(found["certificateAuthority"]["data"]).decode())
    call = urllib.request.Request(f"{found['endpoint']}{SPACE}", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(call, context=trusted, timeout=10) as answer:
            json.loads(answer.read())
            return int(answer.status)
    except HTTPError as problem:
        return problem.code


def test_a_member_is_let_in_by_a_token_of_sts(cluster: tuple[LocalAws, kubernetes.Cluster]) -> None:
    assert ask(cluster[0], token_of(cluster[0])) == 200


def test_a_token_of_another_cluster_a_stranger_or_nobody_is_not(cluster: tuple[LocalAws, kubernetes.Cluster]) -> None:
    aws, _ = cluster
    whole = token_of(aws)
    tokens = [token_of(aws, cluster="other"), token_of(aws, role=f"{ROLE}-2"), whole[:-8], "k8s-aws-v1.e30", ""]
    assert [ask(aws, one) for one in tokens] == [401] * len(tokens)


def test_a_cluster_that_is_not_there_is_not_described(cluster: tuple[LocalAws, kubernetes.Cluster]) -> None:
    eks = cluster[0].client("eks", "eu-central-1")
    with pytest.raises(eks.exceptions.ResourceNotFoundException):
        eks.describe_cluster(name="other")
