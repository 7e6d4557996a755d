"""Reads the release manifest of the mpi-operator, which Trainyard does not bring along, and prepares it for a cluster of EKS."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml

from contract.kubernetes_objects import OPERATOR_SOURCE, SYSTEM_POOL
from stacks.parts.assembled import NotSetUp

POOL = "karpenter.sh/nodepool"
TAINT = {"key": "CriticalAddonsOnly", "operator": "Exists"}
"""What the machines of that pool repel everything else with."""
CUT = frozenset({"description"})
"""Members of the definition that say something to people alone: they are nine tenths of it, and a template has an end."""


def read_operator_manifest(file: Path, digest: str) -> list[dict[str, Any]]:
    """Returns the objects, the operator on EKS's own small machines. Raises NotSetUp where the file is not there, or is another one."""
    where = f"kubernetes.operator_manifest: {file.name}"
    try:
        body = file.read_bytes()
    except OSError as problem:
        raise NotSetUp(f"{where} cannot be read: {problem.strerror}; allowed: {OPERATOR_SOURCE}") from None
    if (found := hashlib.sha256(body).hexdigest()) != digest:
        raise NotSetUp(
            f"{where} has the SHA-256 {found}, and kubernetes.operator_digest is {digest}; allowed: {OPERATOR_SOURCE}, or the digest of a "
            "file that you have read"
        )
    try:
        objects = [one for one in yaml.safe_load_all(body) if one]
    except yaml.YAMLError as problem:
        raise NotSetUp(f"{where} is not YAML: {problem}") from None
    return [_prepare(one) for one in objects]


def _prepare(given: dict[str, Any]) -> dict[str, Any]:
    if given.get("kind") == "CustomResourceDefinition":
        cut: dict[str, Any] = cut_descriptions(given)
        return cut
    if given.get("kind") == "Deployment":
        pod = given["spec"]["template"]["spec"]
        pod["nodeSelector"] = {**pod.get("nodeSelector", {}), POOL: SYSTEM_POOL}
        pod["tolerations"] = [*pod.get("tolerations", []), TAINT]
    return given


def cut_descriptions(value: Any) -> Any:
    """Takes descriptions away, which are texts; a property that is called so is an object."""
    if isinstance(value, dict):
        return {key: cut_descriptions(one) for key, one in value.items() if not (key in CUT and isinstance(one, str))}
    return [cut_descriptions(one) for one in value] if isinstance(value, list) else value
