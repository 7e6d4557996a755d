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
from localaws.services.kubernetes_schema import (
    close_objects,
    list_policy_problems,
    list_problems,
    list_schema_problems,
)
from localaws.testing.waiting import HANG_S

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
POLICY: dict[str, Any] = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "one"},
    "spec": {"podSelector": {"matchLabels": {}}, "policyTypes": ["Ingress"]},
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
    policy = {**POLICY, "metadata": {"name": "one", "ownerReferences": [owner]}}
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


WORKER = "spec.mpiReplicaSpecs.Worker"
POD = f"{WORKER}.template.spec"
CONTAINER = {"name": "t", "image": "i"}


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("spec.slotsPerWorkers", 1, 'unknown field "spec.slotsPerWorkers"'),
        (f"{WORKER}.replica", 1, f'unknown field "{WORKER}.replica"'),
        (f"{POD}.containers", [{**CONTAINER, "img": "i"}], f'unknown field "{POD}.containers[0].img"'),
        (
            f"{POD}.containers",
            [CONTAINER, {**CONTAINER, "name": "u", "env": [{"name": "A", "valueFrom": {"field": {}}}]}],
            f'unknown field "{POD}.containers[1].env[0].valueFrom.field"',
        ),
        ("metadata.label", {}, 'unknown field "metadata.label"'),
        (f"{WORKER}.template.metadata", {"uid": "1"}, f'unknown field "{WORKER}.template.metadata.uid"'),
        ("state", {}, 'unknown field "state"'),
    ],
)
def test_a_field_that_no_schema_has_is_refused_however_deep_it_lies(path: str, value: Any, problem: str) -> None:
    assert list_problems(changed(path, value)) == [problem]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("spec.slotsPerWorker", "1", "spec.slotsPerWorker: '1' is not of type 'integer'"),
        ("spec.slotsPerWorker", True, "spec.slotsPerWorker: True is not of type 'integer'"),
        ("spec.slotsPerWorker", 1 << 31, "spec.slotsPerWorker: 2147483648 is not a 'int32'"),
        (f"{POD}.containers", {}, f"{POD}.containers: {{}} is not of type 'array'"),
        (f"{POD}.tolerations", [{"key": 1}], f"{POD}.tolerations[0].key: 1 is not of type 'string'"),
        ("metadata.labels", {"a": 1}, "metadata.labels.a: 1 is not of type 'string'"),
        (
            f"{POD}.containers",
            [{**CONTAINER, "resources": {"limits": {"memory": 1.5}}}],
            f"{POD}.containers[0].resources.limits.memory: 1.5 is not valid under any of the given schemas",
        ),
        (
            f"{POD}.volumes",
            [{"name": "v", "emptyDir": {"sizeLimit": "much"}}],
            f"{POD}.volumes[0].emptyDir.sizeLimit: 'much' does not match",
        ),
    ],
)
def test_a_value_of_another_type_or_form_is_refused_with_its_place(path: str, value: Any, problem: str) -> None:
    assert [one[: len(problem)] for one in list_problems(changed(path, value))] == [problem]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("spec.mpiImplementation", "LAM", "spec.mpiImplementation: 'LAM' is not one of ['OpenMPI', 'Intel', 'MPICH']"),
        ("spec.runPolicy.cleanPodPolicy", "Some", "spec.runPolicy.cleanPodPolicy: 'Some' is not one of"),
        ("spec.runPolicy.managedBy", "me", "spec.runPolicy.managedBy: 'me' is not one of"),
        (f"{WORKER}.restartPolicy", "Always", f"{WORKER}.restartPolicy: 'Always' is not one of ['Never', 'OnFailure']"),
        ("kind", "Job", "kind: 'Job' is not one of ['MPIJob']"),
        ("apiVersion", "kubeflow.org/v1", "apiVersion: 'kubeflow.org/v1' is not one of"),
    ],
)
def test_a_word_that_is_none_of_those_allowed_is_refused_with_its_place(path: str, value: Any, problem: str) -> None:
    assert [one[: len(problem)] for one in list_problems(changed(path, value))] == [problem]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (f"{POD}.containers", [{"image": "i"}], f"{POD}.containers[0]: 'name' is a required property"),
        (POD, {}, f"{POD}: 'containers' is a required property"),
        (f"{POD}.containers", [], f"{POD}.containers: [] should be non-empty"),
        ("spec", {}, "spec: 'mpiReplicaSpecs' is a required property"),
        ("spec.mpiReplicaSpecs", {}, "spec.mpiReplicaSpecs: 'Launcher' is a required property"),
    ],
)
def test_what_is_missing_is_refused_with_the_place_where_it_belongs(path: str, value: Any, problem: str) -> None:
    assert list_problems(changed(path, value)) == [problem]


def test_two_things_of_one_name_in_a_list_that_is_a_map_are_refused() -> None:
    twice = [{**CONTAINER, "env": [{"name": "A"}, {"name": "B"}, {"name": "A"}]}]
    assert list_problems(changed(f"{POD}.containers", twice)) == [f'{POD}.containers[0].env[2]: Duplicate value: ["A"]']
    ports = [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}, {"containerPort": 1, "protocol": "UDP"}]
    found = list_problems(changed(f"{POD}.containers", [{**CONTAINER, "ports": ports}]))
    assert found == [f'{POD}.containers[0].ports[1]: Duplicate value: [1, "TCP"]']


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (f"{WORKER}.replicas", 0, f"{WORKER}.replicas: 0 is less than the minimum of 1"),
        ("spec.mpiReplicaSpecs.Launcher.replicas", 2, "spec.mpiReplicaSpecs.Launcher.replicas: 1 was expected"),
        ("spec.slotsPerWorker", -1, "spec.slotsPerWorker: -1 is less than the minimum of 0"),
        ("spec.runPolicy.activeDeadlineSeconds", -1, "spec.runPolicy.activeDeadlineSeconds: -1 is less than"),
        ("metadata.name", "One", "metadata.name: One-worker-1 is no label of DNS"),
        ("metadata.name", "a" * 55, f"metadata.name: {'a' * 55}-worker-1 is no label of DNS"),
        ("metadata.labels", {"a:b": "c"}, "metadata.labels: 'a:b' does not match"),
        ("metadata.labels", {"a": "c d"}, "metadata.labels.a: 'c d' does not match"),
        (
            f"{WORKER}.template.metadata",
            {"labels": {"a": "b:c"}},
            f"{WORKER}.template.metadata.labels.a: 'b:c' does not",
        ),
    ],
)
def test_what_the_operator_or_a_label_does_not_allow_is_refused(path: str, value: Any, problem: str) -> None:
    assert [one[: len(problem)] for one in list_problems(changed(path, value))] == [problem]


@pytest.mark.parametrize("given", [None, [], "job", 1])
def test_what_is_no_object_is_refused(given: Any) -> None:
    for found in (list_problems(given), list_policy_problems(given)):
        assert [one.partition(":")[0] for one in found] == ["the object"]


@pytest.mark.parametrize("path", ["metadata", "metadata.name", "metadata.labels", "spec", WORKER, f"{WORKER}.replicas"])
def test_null_is_refused_with_its_place(path: str) -> None:
    assert [one.partition(":")[0] for one in list_problems(changed(path, None))] == [path]


def test_an_object_without_a_name_or_a_kind_is_refused() -> None:
    nameless, kindless = changed("metadata", {}), {key: one for key, one in JOB.items() if key != "kind"}
    assert list_problems(nameless) == list_policy_problems({**POLICY, "metadata": {}}) != []
    assert list_problems(kindless) == list_policy_problems(kindless | {"spec": {}, "apiVersion": POLICY["apiVersion"]})
    assert (list_problems(nameless), list_problems(kindless)) == (
        ["metadata: 'name' is a required property"],
        ["the object: 'kind' is a required property"],
    )


@pytest.mark.parametrize("amount", [1, "1", "500m", "1.5Gi"])
def test_an_amount_is_a_whole_number_or_a_text(amount: object) -> None:
    limited = [{**CONTAINER, "resources": {"limits": {"cpu": amount}}}]
    assert list_problems(changed(f"{POD}.containers", limited)) == []


def test_a_place_that_keeps_unknown_fields_takes_them_and_checks_those_it_knows() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    open_ = {**inner, "x-kubernetes-preserve-unknown-fields": True}
    schema = close_objects({"type": "object", "properties": {"closed": inner, "open": open_}})
    given = {"closed": {"a": "1", "b": 1}, "open": {"a": 1, "b": 1}}
    assert list_schema_problems(given, schema) == ['unknown field "closed.b"', "open.a: 1 is not of type 'string'"]


def test_a_status_that_is_sent_with_a_job_is_not_taken(model: KubernetesModel) -> None:
    done = {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}
    assert "status" not in model.answer("POST", SPACE, {**JOB, **done})[1]
    assert "status" not in model.answer("PATCH", f"{SPACE}/one", done, MERGE)[1]


def test_what_the_place_holder_of_the_operator_says_of_a_job_fits_its_schema(model: KubernetesModel) -> None:
    model.answer("POST", SPACE, JOB)
    job = model.jobs["lines", "one"]
    model.say(job, "Created", "MPIJobCreated")
    model.say(job, "Running", "MPIJobRunning")
    model.suspend(job)
    assert job["status"]
    assert list_problems(job) == []


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"podselector": {}}, 'unknown field "spec.podselector"'),
        ({"policyTypes": "Ingress"}, "spec.policyTypes: 'Ingress' is not of type 'array'"),
        ({"ingress": [{"from": [{"podSelector": []}]}]}, "spec.ingress[0].from[0].podSelector: [] is not of type"),
    ],
)
def test_a_policy_that_kubernetes_does_not_know_is_refused_with_its_place(spec: dict[str, Any], problem: str) -> None:
    found = list_policy_problems({**POLICY, "spec": spec})
    assert [one[: len(problem)] for one in found] == [problem]


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
        with urllib.request.urlopen(call, context=trusted, timeout=HANG_S) as answer:
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
