"""The objects that a cluster of Kubernetes has for a deployment's lines: of its own cluster a deploy makes them, of another its owner."""

from __future__ import annotations

from typing import Any

from contract import names
from contract.mpi_job import API, PLURAL, SERVICE_ACCOUNT, mark_deployment
from contract.pod_network import NETWORKING, POLICIES

NEW = "new"
"""The setting that makes a cluster."""
OPERATOR_VERSION = "v0.8.0"
OPERATOR_SOURCE = f"deploy/v2beta1/mpi-operator.yaml of the tag {OPERATOR_VERSION} of github.com/kubeflow/mpi-operator"
OPERATOR_DIGEST = "b38def13a94abe60b2a4b3485239d77f64892b8fbd202e9e435a6031b7500a8f"
"""SHA-256 of that file."""
QUOTA = "machines"
"""The quota of the namespace, whose status says how many pods there are."""
CHILDREN, FUNCTIONS = "children", "functions"
"""Those who speak with the cluster: a child makes, closes and ends MPIJobs, the function deletes old ones too and counts machines."""
RBAC = "rbac.authorization.k8s.io"
GROUP = API.partition("/")[0]
SYSTEM_POOL = "system"
"""The pool of EKS's Auto Mode whose machines take what has its toleration, as the operator gets it."""
EMPTY_S = 60
"""How long a machine of lines stays without a pod."""
EXPIRES_H = 480
"""Age at which a machine of lines is taken away. EKS's Auto Mode gives its pods a day more, and keeps no machine for more than 21 days."""


def group_of(deployment: str, who: str) -> str:
    """Returns the group of Kubernetes that those are in."""
    return f"{names.pod_namespace(deployment)}-{who}"


def build_objects(deployment: str, most_nodes: int) -> list[dict[str, Any]]:
    """Returns namespace, quota, service account and who may do what there; equal inputs give equal objects."""
    space = names.pod_namespace(deployment)
    labels = mark_deployment(deployment)
    jobs = {"apiGroups": [GROUP], "resources": [PLURAL]}
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    quotas = {"apiGroups": [""], "resources": ["resourcequotas"], "resourceNames": [QUOTA], "verbs": ["get"]}
    policies = {"apiGroups": [NETWORKING], "resources": [POLICIES], "verbs": ["create"]}
    making = ["create", "get", "patch"]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": labels}},
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": QUOTA, "namespace": space, "labels": labels},
            # A pod of a line has a machine for itself.
            "spec": {"hard": {"pods": str(most_nodes)}},
        },
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": SERVICE_ACCOUNT, "namespace": space, "labels": labels},
            "automountServiceAccountToken": False,
        },
        *_allow(space, deployment, CHILDREN, [{**jobs, "verbs": making}, pods, quotas, policies]),
        *_allow(space, deployment, FUNCTIONS, [{**jobs, "verbs": [*making, "list", "delete"]}, pods]),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": group_of(deployment, FUNCTIONS), "labels": labels},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": group_of(deployment, FUNCTIONS), "labels": labels},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": group_of(deployment, FUNCTIONS)},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group_of(deployment, FUNCTIONS)}],
        },
    ]


def build_node_pool(deployment: str) -> dict[str, Any]:
    """Returns the pool of machines for lines, of EKS's Auto Mode: on demand, gone once they are empty, and not before they expire."""
    labels = mark_deployment(deployment)
    wanted = {"kubernetes.io/arch": ["amd64"], "karpenter.sh/capacity-type": ["on-demand"]}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": names.pod_namespace(deployment), "labels": labels},
        "spec": {
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "expireAfter": f"{EXPIRES_H}h",
                    "nodeClassRef": {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"},
                    "requirements": [
                        {"key": key, "operator": "In", "values": values} for key, values in sorted(wanted.items())
                    ],
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": f"{EMPTY_S}s",
                # Each week's image makes a machine drift, and a day later its pods would be ended, whatever they say of themselves.
                "budgets": [
                    {"nodes": "0", "reasons": ["Drifted", "Underutilized"]},
                    {"nodes": "100%", "reasons": ["Empty"]},
                ],
            },
        },
    }


def _allow(space: str, deployment: str, who: str, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    labels, group = mark_deployment(deployment), group_of(deployment, who)
    meta = {"name": who, "namespace": space, "labels": labels}
    return [
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": who},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group}],
        },
    ]
