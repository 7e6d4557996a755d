"""Refuses what the API server of Kubernetes refuses: an MPIJob by the definition of the operator's release, a policy by Kubernetes' own.

The schemas are those projects' own, without their descriptions (kubernetes_job.json, kubernetes_objects.json; `make kubernetes-schemas`),
and jsonschema checks with them, as a server does with strict validation: a field that no schema has is refused. Two things are stricter
than a server: it takes a null for nothing, and it takes a job that the operator then refuses in an event, and lets lie.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.validators import extend

FOLDER = Path(__file__).parent
JOBS, OBJECTS = FOLDER / "kubernetes_job.json", FOLDER / "kubernetes_objects.json"
POLICY, METADATA = "NetworkPolicy", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
"""Names of schemas in OBJECTS."""
NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
MOST_NAME = 63
_WORD = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
LABELS = {
    "properties": {
        "labels": {
            "propertyNames": {"pattern": rf"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?{_WORD}\Z"},
            "additionalProperties": {"pattern": rf"^({_WORD})?\Z"},
        }
    }
}
"""What a server asks of metadata beside its schema."""
_COUNT = {"minimum": 0}
_REPLICA = {
    "restartPolicy": {"enum": ["Never", "OnFailure"]},
    "template": {"properties": {"metadata": LABELS, "spec": {"properties": {"containers": {"minItems": 1}}}}},
}
RULES: dict[str, Any] = {
    "properties": {
        "metadata": LABELS,
        "spec": {
            "properties": {
                "slotsPerWorker": _COUNT,
                "runPolicy": {
                    "properties": {
                        "cleanPodPolicy": {"enum": ["None", "Running", "All"]},
                        "ttlSecondsAfterFinished": _COUNT,
                        "activeDeadlineSeconds": _COUNT,
                        "backoffLimit": _COUNT,
                        "managedBy": {"enum": ["kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"]},
                    }
                },
                "mpiReplicaSpecs": {
                    "required": ["Launcher"],
                    "properties": {
                        "Launcher": {"properties": {**_REPLICA, "replicas": {"const": 1}}},
                        "Worker": {"required": ["replicas"], "properties": {**_REPLICA, "replicas": {"minimum": 1}}},
                    },
                },
            }
        },
    }
}
"""What the operator checks of a job that fits its definition (mpi-operator 0.8: pkg/apis/kubeflow/validation), with its defaults, and the
labels. Its rule about names counts letters of several fields, and is below."""


def list_problems(job: Any) -> list[str]:
    """Returns what is wrong with an MPIJob, each with its place; nothing where the server takes it and the operator runs it."""
    if found := list_schema_problems(job, _read_job_schema()):
        return found
    return [*list_schema_problems(job, RULES), *_list_name_problems(job)]


def list_policy_problems(policy: Any) -> list[str]:
    """Returns what is wrong with a policy of the network, each with its place."""
    return list_schema_problems(policy, _read_policy_schema())


def list_schema_problems(given: Any, schema: Mapping[str, Any]) -> list[str]:
    """Returns what of a document does not fit a schema, each with its place."""
    validator = Validator(schema, format_checker=FORMATS)
    return [words for problem in validator.iter_errors(given) for words in _word(problem)]


def close_objects(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of a definition as strict validation reads it: an object has the fields that are named and no others, unless it
    says that it keeps them."""
    closed = dict(schema)
    if "properties" in schema:
        closed["properties"] = {name: close_objects(one) for name, one in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            closed[key] = close_objects(schema[key])
    keeps = schema.get("x-kubernetes-preserve-unknown-fields", False)
    if schema.get("type") == "object" and "additionalProperties" not in schema and not keeps:
        closed["additionalProperties"] = False
    return closed


@cache
def _read_job_schema() -> Mapping[str, Any]:
    """The definition leaves metadata to the server, and what an object is to the address of the call."""
    closed = close_objects(json.loads(JOBS.read_text(encoding="utf-8"))["schema"])
    definitions = _read_objects()
    closed["properties"] |= {
        "apiVersion": {"enum": ["kubeflow.org/v2beta1"]},
        "kind": {"enum": ["MPIJob"]},
        "metadata": {"$ref": f"#/$defs/{METADATA}", "required": ["name"]},
    }
    return {**closed, "required": ["apiVersion", "kind", "metadata", "spec"], "$defs": definitions}


@cache
def _read_policy_schema() -> Mapping[str, Any]:
    definitions = _read_objects()
    return {
        "$ref": f"#/$defs/{POLICY}",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {"metadata": {"required": ["name"], **LABELS}},
        "$defs": definitions,
    }


@cache
def _read_objects() -> Mapping[str, Any]:
    found: Mapping[str, Any] = _refuse_nulls(json.loads(OBJECTS.read_text(encoding="utf-8"))["schema"]["$defs"])
    return found


def _refuse_nulls(value: Any) -> Any:
    """Kubernetes' own schemas allow null everywhere, which nobody has to send."""
    if isinstance(value, list):
        return [_refuse_nulls(one) for one in value if one != "null"]
    return {key: _refuse_nulls(one) for key, one in value.items()} if isinstance(value, Mapping) else value


def _list_name_problems(job: Mapping[str, Any]) -> Iterator[str]:
    """The operator makes names of pods, which are labels of DNS."""
    workers = job["spec"]["mpiReplicaSpecs"].get("Worker", {}).get("replicas", 1)
    longest = f"{job['metadata']['name']}-worker-{max(0, workers - 1)}"
    if not NAME.fullmatch(longest) or len(longest) > MOST_NAME:
        yield f"metadata.name: {longest} is no label of DNS"


def _refuse_twins(_: object, kind: str, given: object, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    """Of a list that is a map, no two entries have the same keys; of one that is a set, none is there twice."""
    if kind not in {"map", "set"} or not isinstance(given, list):
        return
    names = schema.get("x-kubernetes-list-map-keys", ())
    defaults = {name: one.get("default") for name, one in schema["items"].get("properties", {}).items()}
    known = set[str]()
    for number, one in enumerate(given):
        if names and not isinstance(one, Mapping):
            continue
        key = json.dumps([one.get(name, defaults.get(name)) for name in names] if names else one)
        if key in known:
            yield ValidationError(f"Duplicate value: {key}", path=[number])
        known.add(key)


Validator = extend(Draft202012Validator, {"x-kubernetes-list-type": _refuse_twins})
FORMATS = FormatChecker(formats=())
for _bits in (32, 64):
    FORMATS.checks(f"int{_bits}")(
        lambda given, most=1 << (_bits - 1): not isinstance(given, int) or -most <= given < most
    )


def _word(problem: ValidationError) -> Iterator[str]:
    place = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in problem.absolute_path).lstrip(".")
    if problem.validator == "additionalProperties":
        for name in sorted(problem.instance.keys() - problem.schema.get("properties", {}).keys()):
            yield f'unknown field "{f"{place}.{name}".lstrip(".")}"'
    else:
        yield f"{place or 'the object'}: {problem.message}"
