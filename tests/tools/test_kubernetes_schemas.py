"""What the place-holder of a cluster validates with is what other projects publish, and what `make kubernetes-schemas` writes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.kubernetes_objects import OPERATOR_DIGEST, OPERATOR_VERSION
from stacks.kubernetes_settings import KubernetesSettings
from stacks.parts.pod_cluster import VERSION
from tools import kubernetes_schemas
from tools.kubernetes_schemas import JOB_FILE, OBJECTS_FILE, build_job_schema, build_object_schemas, write_canonically
from tools.synthesis import ROOT

VARIABLE = "TRAINYARD_OPERATOR_MANIFEST"
"""Names the operator's manifest, which is not a part of this repository."""
STANDS_FOR_IT = ROOT / "tests" / "stacks" / "files" / "operator.yaml"


def list_keys(value: Any) -> Iterator[str]:
    """Yields what texts are called, at every depth."""
    if isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, str):
                yield key
            yield from list_keys(one)
    elif isinstance(value, list):
        for one in value:
            yield from list_keys(one)


@pytest.mark.parametrize("file", [JOB_FILE, OBJECTS_FILE], ids=lambda file: file.name)
def test_a_schema_is_in_its_one_form_and_has_no_sentences_of_others(file: Path) -> None:
    document = json.loads(file.read_text())
    assert file.read_text() == write_canonically(document)
    assert "description" not in set(list_keys(document["schema"]))
    assert document["source"]["licence"] == "Apache-2.0"


def test_the_schema_of_jobs_is_of_the_release_that_a_cluster_gets() -> None:
    source = json.loads(JOB_FILE.read_text())["source"]
    assert source["sha256"] == OPERATOR_DIGEST == KubernetesSettings().operator_digest
    assert source["version"] == OPERATOR_VERSION
    assert VERSION in json.loads(OBJECTS_FILE.read_text())["source"]["version"]


def test_the_schemas_of_kubernetes_are_what_the_command_writes() -> None:
    assert OBJECTS_FILE.read_text() == write_canonically(build_object_schemas())


@pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no file")
def test_the_schema_of_jobs_is_what_the_command_writes() -> None:
    assert JOB_FILE.read_text() == write_canonically(build_job_schema(Path(os.environ[VARIABLE])))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "allowed: one file, deploy/v2beta1/mpi-operator.yaml of the tag"),
        (["a", "b"], "allowed: one file, deploy/v2beta1/mpi-operator.yaml of the tag"),
        (["absent.yaml"], "absent.yaml cannot be read"),
        ([str(STANDS_FOR_IT)], f"kubernetes.operator_digest is {OPERATOR_DIGEST}"),
    ],
)
def test_any_other_file_is_refused_and_nothing_is_written(
    given: list[str], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kubernetes_schemas, "JOB_FILE", tmp_path / "job.json")
    monkeypatch.setattr(kubernetes_schemas, "OBJECTS_FILE", tmp_path / "objects.json")
    with pytest.raises(SystemExit, match=r"^kubernetes") as refused:
        kubernetes_schemas.main(given)
    assert words in str(refused.value)
    assert list(tmp_path.iterdir()) == []
