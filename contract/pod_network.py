"""Describes who may speak with the pods of an MPIJob: those of the same job alone. Without a policy every pod reaches every other one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contract.mpi_job import API, JOB_NAME, KIND

NETWORKING = "networking.k8s.io"
POLICY, POLICIES = "NetworkPolicy", "networkpolicies"


def close_job(job: Mapping[str, Any], uid: str = "") -> dict[str, Any]:
    """Returns the policy that lets in only pods of the same job; what pods reach outside stays open. `uid` is the object's, with which the
    policy goes; a policy that is applied beside a job has none."""
    metadata = job["metadata"]
    name = str(metadata["name"])
    own = {"podSelector": {"matchLabels": {JOB_NAME: name}}}
    found: dict[str, Any] = {
        "apiVersion": f"{NETWORKING}/v1",
        "kind": POLICY,
        "metadata": {"name": name, "namespace": metadata["namespace"], "labels": dict(metadata["labels"])},
        "spec": {**own, "policyTypes": ["Ingress"], "ingress": [{"from": [own]}]},
    }
    if uid:
        found["metadata"]["ownerReferences"] = [{"apiVersion": API, "kind": KIND, "name": name, "uid": uid}]
    return found


def build_policy_controller() -> dict[str, Any]:
    """Returns what makes EKS's Auto Mode carry policies out: without this object they mean nothing there."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "amazon-vpc-cni", "namespace": "kube-system"},
        "data": {"enable-network-policy-controller": "true"},
    }
