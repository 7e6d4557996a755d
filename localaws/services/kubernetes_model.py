"""The API server of a cluster of Kubernetes, as far as jobs of MPI, their pods, policies and machines go: objects, lists, merges, refusals.

It stands for a server that could not be had here, and takes what the operator's own definition takes (kubernetes_schema.py). The operator
and the kubelet are whoever sets `changed`: they write `status` and `pods`, and calls do not.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any
from urllib.parse import parse_qs, urlsplit

from localaws.services.kubernetes_schema import list_policy_problems, list_problems

Document = dict[str, Any]
JOBS = re.compile(r"/apis/kubeflow\.org/v2beta1/namespaces/([a-z0-9-]+)/mpijobs(?:/([a-z0-9-]+))?")
PODS = re.compile(r"/api/v1/namespaces/([a-z0-9-]+)/pods")
QUOTAS = re.compile(r"/api/v1/namespaces/([a-z0-9-]+)/resourcequotas/[a-z0-9-]+")
POLICIES = re.compile(r"/apis/networking\.k8s\.io/v1/namespaces/([a-z0-9-]+)/networkpolicies")
NODES = re.compile(r"/api/v1/nodes")
REQUIREMENT = re.compile(r"(!?)([^=,! ]+)(?: notin \(([^)]*)\)|=([^,]*))?(?:,|$)")
"""Of a selector: `!key`, `key`, `key notin (values)` or `key=value`."""
MERGE = "application/merge-patch+json"
JOB_NAME = "training.kubeflow.org/job-name"


class KubernetesModel:
    """One cluster. `changed` is called with each job that is made or changed by a call, `deleted` with each that is gone."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now`: UTC epoch seconds."""
        self._now, self._numbers = now, itertools.count(1)
        self.jobs: dict[tuple[str, str], Document] = {}
        """By namespace and name."""
        self.pods: dict[tuple[str, str], Document] = {}
        self.policies: dict[tuple[str, str], Document] = {}
        """Policies of the network, which nothing here carries out."""
        self.nodes: list[Document] = []
        self.changed: Callable[[Document], None] = lambda _: None
        self.deleted: Callable[[Document], None] = lambda _: None

    def answer(self, method: str, target: str, body: Any = None, kind: str = "") -> tuple[int, Document]:
        """Answers a call: the status and the document."""
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if found := JOBS.fullmatch(parts.path):
            return self._answer_about_jobs(method, found[1], found[2] or "", query, body, kind)
        if (found := PODS.fullmatch(parts.path)) and method == "GET":
            return 200, _page("Pod", [one for (space, _), one in self.pods.items() if space == found[1]], query)
        if (found := QUOTAS.fullmatch(parts.path)) and method == "GET":
            return 200, {"kind": "ResourceQuota", "status": {"used": {"pods": str(self._count_pods(found[1]))}}}
        if (found := POLICIES.fullmatch(parts.path)) and method == "POST":
            return self._create_policy(found[1], body)
        if NODES.fullmatch(parts.path) and method == "GET":
            return 200, _page("Node", self.nodes, query)
        return refuse(404, "NotFound", "the server could not find the requested resource")

    def _answer_about_jobs(
        self, method: str, space: str, name: str, query: Mapping[str, str], body: Any, kind: str
    ) -> tuple[int, Document]:
        if method == "POST" and not name:
            return self._create(space, body)
        if method == "GET" and not name:
            return 200, _page("MPIJob", [one for (of, _), one in self.jobs.items() if of == space], query)
        job = self.jobs.get((space, name))
        if job is None:
            return refuse(404, "NotFound", f'mpijobs.kubeflow.org "{name}" not found')
        if method == "GET":
            return 200, copy.deepcopy(job)
        if method == "PATCH" and kind == MERGE and isinstance(body, dict):
            return self._patch(job, body)
        if method == "DELETE":
            del self.jobs[space, name]
            self._collect_policies(job["metadata"]["uid"])
            self.deleted(job)
            return 200, {"kind": "Status", "status": "Success"}
        return refuse(415, "UnsupportedMediaType", f"{method} of {kind or 'nothing'}")

    def _count_pods(self, space: str) -> int:
        """Counts pods as a quota does. The operator makes those of a job at once; here some come later."""
        jobs = [one for (of, _), one in self.jobs.items() if of == space and not is_over(one) and not is_suspended(one)]
        return sum(int(one.get("replicas", 0)) for job in jobs for one in job["spec"]["mpiReplicaSpecs"].values())

    def _create(self, space: str, body: Any) -> tuple[int, Document]:
        if problems := list_problems(body):
            return refuse(422, "Invalid", f"MPIJob is invalid: {'; '.join(problems)}")
        name, of = body["metadata"]["name"], body["metadata"].get("namespace", space)
        if of != space:
            return refuse(
                400, "BadRequest", f"the namespace of the object ({of}) does not match that of the call ({space})"
            )
        if (space, name) in self.jobs:
            return refuse(409, "AlreadyExists", f'mpijobs.kubeflow.org "{name}" already exists')
        job = _leave_status(copy.deepcopy(body))
        number = next(self._numbers)
        job["metadata"] |= {
            "namespace": space,
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "generation": 1,
            "creationTimestamp": write_time(self._now()),
        }
        self.jobs[space, name] = job
        self.changed(job)
        return 201, copy.deepcopy(job)

    def _create_policy(self, space: str, body: Any) -> tuple[int, Document]:
        if problems := list_policy_problems(body):
            return refuse(422, "Invalid", f"NetworkPolicy is invalid: {'; '.join(problems)}")
        key = (space, body["metadata"]["name"])
        if key in self.policies:
            return refuse(409, "AlreadyExists", f'networkpolicies.networking.k8s.io "{key[1]}" already exists')
        self.policies[key] = copy.deepcopy(body)
        return 201, copy.deepcopy(body)

    def _collect_policies(self, uid: str) -> None:
        """Removes what the deleted object owned."""
        for key, one in [*self.policies.items()]:
            if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences", [])):
                del self.policies[key]

    def _patch(self, job: Document, change: Document) -> tuple[int, Document]:
        whole = _merge(job, _leave_status(change))
        if problems := list_problems(whole):
            return refuse(422, "Invalid", f"MPIJob is invalid: {'; '.join(problems)}")
        job.clear()
        job.update(whole)
        job["metadata"]["generation"] += 1
        self.changed(job)
        return 200, copy.deepcopy(job)

    # for the operator and the kubelet

    def say(self, job: Document, kind: str, reason: str, message: str = "", *, is_true: bool = True) -> None:
        """Adds a condition to the status, or changes it."""
        status = job.setdefault("status", {})
        conditions = [one for one in status.setdefault("conditions", []) if one["type"] != kind]
        at = write_time(self._now())
        new = {"type": kind, "status": str(is_true), "reason": reason, "message": message, "lastTransitionTime": at}
        status["conditions"] = [*conditions, new]
        status.setdefault("startTime", at)
        if kind in {"Succeeded", "Failed"}:
            status["completionTime"] = at

    def suspend(self, job: Document) -> None:
        """Says what the operator says of a suspended job: also that it does not run, from now on."""
        self.say(job, "Suspended", "MPIJobSuspended")
        self.say(job, "Running", "MPIJobSuspended", is_true=False)

    def pods_of(self, job: Document) -> list[Document]:
        """The pods that there are of a job."""
        space, name = job["metadata"]["namespace"], job["metadata"]["name"]
        return [
            one for (of, _), one in self.pods.items() if of == space and one["metadata"]["labels"].get(JOB_NAME) == name
        ]

    def remove_pods(self, job: Document) -> None:
        for pod in self.pods_of(job):
            self.pods.pop((pod["metadata"]["namespace"], pod["metadata"]["name"]), None)


def build_pods(job: Document) -> Iterator[Document]:
    """Yields the pods that the operator makes of a job, by rank: the launcher first, where it is a worker too."""
    name, space = job["metadata"]["name"], job["metadata"]["namespace"]
    replicas = job["spec"]["mpiReplicaSpecs"]
    workers = int(replicas.get("Worker", {}).get("replicas", 0))
    for rank in range(workers + 1):
        role, pod = ("launcher", f"{name}-launcher") if rank == 0 else ("worker", f"{name}-worker-{rank - 1}")
        template = copy.deepcopy(replicas["Worker" if rank else "Launcher"]["template"])
        labels = {
            **(template.get("metadata") or {}).get("labels", {}),
            JOB_NAME: name,
            "training.kubeflow.org/job-role": role,
            "training.kubeflow.org/replica-index": str(rank),
        }
        annotations = (template.get("metadata") or {}).get("annotations", {})
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod, "namespace": space, "labels": labels, "annotations": annotations},
            "spec": {**template["spec"], "hostname": pod, "restartPolicy": "Never"},
            "status": {"phase": "Pending"},
        }


def is_suspended(job: Document) -> bool:
    return bool(job["spec"].get("runPolicy", {}).get("suspend"))


def is_over(job: Document) -> bool:
    conditions = job.get("status", {}).get("conditions", [])
    return any(one["type"] in {"Succeeded", "Failed"} and one["status"] == "True" for one in conditions)


def write_time(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def refuse(status: int, reason: str, message: str) -> tuple[int, Document]:
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason}
    return status, {**document, "message": message, "code": status}


def _leave_status(document: Document) -> Document:
    """A status is written by another call, which nobody here makes."""
    return {key: one for key, one in document.items() if key != "status"}


def _merge(target: Any, change: Any) -> Any:
    """RFC 7386."""
    if not isinstance(change, dict):
        return copy.deepcopy(change)
    found = dict(copy.deepcopy(target)) if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merge(found.get(key), value)
    return found


def _fits(labels: Mapping[str, str], absent: str, key: str, unlike: str, like: str) -> bool:
    """Whether labels meet one requirement of a selector."""
    if absent or not (unlike or like):
        return (key in labels) is not bool(absent)
    return labels.get(key) not in unlike.split(",") if unlike else labels.get(key) == like


def _page(kind: str, objects: list[Document], query: Mapping[str, str]) -> Document:
    wanted = REQUIREMENT.findall(query.get("labelSelector", ""))
    fitting = [one for one in objects if all(_fits(one["metadata"].get("labels", {}), *each) for each in wanted)]
    first, most = int(query.get("continue", "0")), int(query.get("limit", "0")) or len(fitting)
    more = str(first + most) if first + most < len(fitting) else ""
    items = copy.deepcopy(fitting[first : first + most])
    return {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"continue": more}, "items": items}
