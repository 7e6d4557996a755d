"""What an MPIJob (kubeflow.org/v2beta1) may say, after the fields that its operator's types have; a pod's own fields by name.

The API server of a real cluster has the operator's whole definition, which is some thousand lines. Here is what jobs may use, and every
other field is refused by its place, as a server refuses it with strict validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

LABEL = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
MOST_NAME = 63

_STRINGS = {"*": str}
_WORDS = [str]
_CONTAINER = {
    "name": str,
    "image": str,
    "command": _WORDS,
    "args": _WORDS,
    "workingDir": str,
    "restartPolicy": ("Always",),
    "env": [{"name": str, "value": str, "valueFrom": {"fieldRef": {"fieldPath": str, "apiVersion": str}}}],
    "resources": {"limits": _STRINGS, "requests": _STRINGS},
    "securityContext": {
        "runAsUser": int,
        "allowPrivilegeEscalation": bool,
        "capabilities": {"add": _WORDS, "drop": _WORDS},
        "privileged": bool,
    },
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "volumeMounts": [{"name": str, "mountPath": str, "subPath": str, "readOnly": bool}],
}
_POD = {
    "serviceAccountName": str,
    "automountServiceAccountToken": bool,
    "enableServiceLinks": bool,
    "nodeSelector": _STRINGS,
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": str, "labelSelector": {"matchLabels": _STRINGS}}
            ]
        }
    },
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str}],
    "terminationGracePeriodSeconds": int,
    "securityContext": {"seccompProfile": {"type": str}, "fsGroup": int, "runAsUser": int},
    "initContainers": [_CONTAINER],
    "containers": [_CONTAINER],
    "volumes": [{"name": str, "emptyDir": {"sizeLimit": str, "medium": str}}],
    "restartPolicy": str,
}
_METADATA = {"labels": _STRINGS, "annotations": _STRINGS}
_REPLICA = {"replicas": int, "restartPolicy": ("Never", "OnFailure"), "template": {"metadata": _METADATA, "spec": _POD}}
JOB: dict[str, Any] = {
    "apiVersion": ("kubeflow.org/v2beta1",),
    "kind": ("MPIJob",),
    "metadata": {
        "name": str,
        "namespace": str,
        "uid": str,
        "generation": int,
        "creationTimestamp": str,
        **_METADATA,
    },
    "spec": {
        "slotsPerWorker": int,
        "runLauncherAsWorker": bool,
        "launcherCreationPolicy": ("AtStartup", "WaitForWorkersReady"),
        "mpiImplementation": ("OpenMPI", "Intel", "MPICH"),
        "sshAuthMountPath": str,
        "runPolicy": {
            "cleanPodPolicy": ("None", "Running", "All"),
            "activeDeadlineSeconds": int,
            "backoffLimit": int,
            "ttlSecondsAfterFinished": int,
            "suspend": bool,
            "managedBy": str,
        },
        "mpiReplicaSpecs": {"Launcher": _REPLICA, "Worker": _REPLICA},
    },
}
_PODS = {"podSelector": {"matchLabels": _STRINGS}}
POLICY: dict[str, Any] = {
    "apiVersion": ("networking.k8s.io/v1",),
    "kind": ("NetworkPolicy",),
    "metadata": {
        "name": str,
        "namespace": str,
        "ownerReferences": [{"apiVersion": str, "kind": str, "name": str, "uid": str}],
        **_METADATA,
    },
    "spec": {**_PODS, "policyTypes": [("Ingress", "Egress")], "ingress": [{"from": [_PODS]}]},
}


def list_policy_problems(policy: Any) -> list[str]:
    """Returns what is wrong with a policy of the network, each with its place."""
    return list(_check(policy, POLICY, ""))


def list_problems(job: Any) -> list[str]:
    """Returns what is wrong with an MPIJob, each with its place; nothing where the server takes it."""
    found = list(_check(job, JOB, ""))
    if found:
        return found
    name, replicas = str(job["metadata"].get("name", "")), job["spec"].get("mpiReplicaSpecs", {})
    workers = replicas.get("Worker", {}).get("replicas", 0)
    longest = f"{name}-worker-{max(0, workers - 1)}"
    if not NAME.fullmatch(longest) or len(longest) > MOST_NAME:
        found.append(f"metadata.name: {longest} is no label of DNS")
    if "Launcher" not in replicas:
        found.append("spec.mpiReplicaSpecs[Launcher]: must have Launcher replica spec")
    if "Worker" in replicas and workers < 1:
        found.append("spec.mpiReplicaSpecs[Worker].replicas: must be greater than or equal to 1")
    for key, value in job["metadata"].get("labels", {}).items():
        if not LABEL.fullmatch(key) or not VALUE.fullmatch(value):
            found.append(f"metadata.labels: {key}={value} is no label")
    for role, replica in replicas.items():
        if not replica["template"]["spec"].get("containers"):
            found.append(f"spec.mpiReplicaSpecs[{role}].template.spec.containers: must define at least one container")
    return found


def _check(value: Any, shape: Any, place: str) -> Iterator[str]:
    where = place.lstrip(".") or "the object"
    if isinstance(shape, tuple):
        if value not in shape:
            yield f"{where}: {value!r} is not one of {', '.join(shape)}"
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{where}: is no list"
            return
        for number, one in enumerate(value):
            yield from _check(one, shape[0], f"{place}[{number}]")
    elif isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            yield f"{where}: is no object"
            return
        for key, one in value.items():
            inner = shape.get(key, shape.get("*"))
            if inner is None:
                yield f'unknown field "{f"{place}.{key}".lstrip(".")}"'
            else:
                yield from _check(one, inner, f"{place}.{key}")
    elif not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
        yield f"{where}: {value!r} is no {shape.__name__}"
