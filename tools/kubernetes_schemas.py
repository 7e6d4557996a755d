"""Writes the schemas with which the local AWS validates objects of Kubernetes, out of what their projects publish.

`python -m tools.kubernetes_schemas FILE`: FILE is the operator's release manifest, which is not a part of this repository. Kubernetes' own
schemas are in the package kubernetes-validate.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from contract.kubernetes_objects import OPERATOR_DIGEST, OPERATOR_SOURCE, OPERATOR_VERSION
from contract.mpi_job import API, PLURAL
from contract.pod_network import POLICY
from stacks.parts.assembled import NotSetUp
from stacks.parts.operator_manifest import cut_descriptions, read_operator_manifest
from stacks.parts.pod_cluster import VERSION
from tools.synthesis import ROOT

FOLDER = ROOT / "localaws" / "services"
JOB_FILE, OBJECTS_FILE = FOLDER / "kubernetes_job.json", FOLDER / "kubernetes_objects.json"
LICENCE = "Apache-2.0"
"""Of both projects."""
PACKAGE = "kubernetes_validate"
REFERENCE = "/api/_definitions.json#/$defs/"
"""How a schema of the package names another one."""
LOCAL = "#/$defs/"


def build_job_schema(file: Path) -> dict[str, Any]:
    """Returns the schema of MPIJobs and where it is from. Raises NotSetUp where the file is not there, or is not the pinned one."""
    definitions = [
        one for one in read_operator_manifest(file, OPERATOR_DIGEST) if one["kind"] == "CustomResourceDefinition"
    ]
    (spec,) = (one["spec"] for one in definitions if one["spec"]["names"]["plural"] == PLURAL)
    (schema,) = (one["schema"]["openAPIV3Schema"] for one in spec["versions"] if one["name"] == API.partition("/")[2])
    source = {"of": OPERATOR_SOURCE, "version": OPERATOR_VERSION, "sha256": OPERATOR_DIGEST, "licence": LICENCE}
    return {"source": source, "schema": schema}


def build_object_schemas() -> dict[str, Any]:
    """Returns the schemas of policies and of metadata with all that they name, for the version of Kubernetes that a cluster gets."""
    folder = files(PACKAGE) / "kubernetes-json-schema" / f"v{VERSION}.0-local-strict"
    definitions = json.loads((folder / "_definitions.json").read_text(encoding="utf-8"))["$defs"]
    policy = json.loads((folder / "networkpolicy-networking-v1.json").read_text(encoding="utf-8"))
    found = {POLICY: {key: one for key, one in policy.items() if key not in {"$id", "$schema"}}}
    missing = list(_list_references(policy))
    while missing:
        name = missing.pop()
        if name not in found:
            found[name] = definitions[name]
            missing += _list_references(definitions[name])
    source = {
        "of": f"the OpenAPI document of github.com/kubernetes/kubernetes, as the package {PACKAGE} has it",
        "version": f"v{VERSION}.0",
        "licence": LICENCE,
    }
    text = json.dumps(cut_descriptions(found)).replace(REFERENCE, LOCAL)
    return {"source": source, "schema": {"$defs": json.loads(text)}}


def write_canonically(document: dict[str, Any]) -> str:
    """Returns a document as the repository has it."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"


def _list_references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(named := value.get("$ref"), str):
            yield named.rpartition("/")[2]
        for one in value.values():
            yield from _list_references(one)
    elif isinstance(value, list):
        for one in value:
            yield from _list_references(one)


def main(given: Sequence[str]) -> None:
    if len(given) != 1:
        sys.exit(f"kubernetes-schemas: {len(given)} files are given; allowed: one file, {OPERATOR_SOURCE}")
    try:
        documents = {JOB_FILE: build_job_schema(Path(given[0])), OBJECTS_FILE: build_object_schemas()}
    except NotSetUp as problem:
        sys.exit(str(problem))
    for path, document in documents.items():
        path.write_text(write_canonically(document), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
