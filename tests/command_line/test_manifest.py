"""`manifest` prints what a person can apply: a line's MPIJob as a child would make it, and what a cluster needs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from localaws.services.kubernetes_schema import list_policy_problems, list_problems
from stacks.parts.pod_cluster import VERSION
from stacks.settings import Settings
from trainyard.manifests import MOST_NAME, build_line, list_cluster_objects, list_line, write_yaml
from trainyard.stops import CannotProceed

EXAMPLE = Path(__file__).parents[2] / "examples" / "mpi_digits" / "line.jsonl"
LINE: dict[str, Any] = json.loads(EXAMPLE.read_text())
SETTINGS = Settings.parse({"kubernetes": {"cluster": "lab", "max_nodes": 4}})


def printed(**changes: Any) -> Any:
    (found,) = yaml.safe_load_all(write_yaml([build_line({**LINE, **changes}, SETTINGS, "digits", 1)]))
    return found


def test_a_line_is_printed_as_an_mpi_job_that_a_cluster_takes() -> None:
    job = printed()
    assert list_problems(job) == []
    assert job["metadata"]["name"].startswith("digits-")
    assert "mpirun" in job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"]


@pytest.mark.parametrize("name", [None, "digits", "a-name-that-is-longer-than-its-place"])
def test_two_lines_share_neither_an_object_nor_checkpoints_whatever_name_they_are_given(name: str | None) -> None:
    first, second = (build_line({**LINE, "hyperparameters": {"lr": one}}, SETTINGS, name, 1) for one in ("0.1", "9"))
    assert first["metadata"]["name"] != second["metadata"]["name"]
    notes = [
        next(
            item["value"]
            for item in one["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["initContainers"][0]["env"]
            if item["name"] == "TRAINYARD_CHECKPOINTS"
        )
        for one in (first, second)
    ]
    assert notes[0] != notes[1]
    assert first == build_line({**LINE, "hyperparameters": {"lr": "0.1"}}, SETTINGS, name, 1)


WORDS = (
    "; allowed: up to 63 letters, digits, dots, hyphens and underscores, with a letter or digit at each end; the job's name begins with "
    "the first 11, in small letters, digits and hyphens, and with a g before a digit"
)


@pytest.mark.parametrize(
    ("name", "begin"),
    [("9Foo_Bar", "g9foo-bar-"), ("a.b", "a-b-"), ("x" * 63, "x" * 11 + "-"), ("A" * 12, "a" * 11 + "-")],
)
def test_a_name_of_a_job_begins_as_the_refusal_of_one_says(name: str, begin: str) -> None:
    found = build_line(LINE, SETTINGS, name, 1)["metadata"]["name"]
    assert found.startswith(begin)
    assert f"first {MOST_NAME}," in WORDS


@pytest.mark.parametrize("name", ["a/b", "grüße", "a b", "-a", ".x", "x_", "x" * 64])
def test_a_name_that_no_label_takes_is_refused_with_what_becomes_of_one(name: str) -> None:
    with pytest.raises(CannotProceed, match=f"^--name: is {re.escape(repr(name) + WORDS)}$"):
        build_line(LINE, SETTINGS, name, 1)


def test_a_policy_beside_the_job_lets_in_its_own_pods_alone() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    policy, job = yaml.safe_load_all(write_yaml(list_line(LINE, SETTINGS, "digits", 1)))
    assert list_policy_problems(policy) == []
    kubernetes_validate.validate(policy, VERSION, strict=True)
    own = {"podSelector": {"matchLabels": {"training.kubeflow.org/job-name": job["metadata"]["name"]}}}
    assert policy["spec"] == {**own, "policyTypes": ["Ingress"], "ingress": [{"from": [own]}]}
    assert policy["metadata"]["namespace"] == job["metadata"]["namespace"]
    assert "ownerReferences" not in policy["metadata"]


def test_the_reaper_leaves_it_alone() -> None:
    assert printed()["metadata"]["annotations"]["trainyard/protected"] == "applied by hand"


def test_equal_parts_of_an_object_are_printed_and_not_referred_to() -> None:
    assert "&id" not in write_yaml([build_line(LINE, SETTINGS, None, 0)])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"market": "spot"}, "market: spot means nothing with the backend kubernetes"),
        ({"region": "us-east-1"}, "region: us-east-1 is not a region of trainyard"),
        ({"instance_count": 9}, "instance_count: 9 is more than the nodes of the cluster"),
        ({"code": "s3://trainyard-home-1-eu-central-1/uploads/a.tar.gz"}, "code: Plan copies the archive for a grid"),
        ({"sort": 1}, "sort"),
    ],
)
def test_what_plan_would_refuse_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CannotProceed) as problem:
        printed(**changes)
    assert words in str(problem.value)


def test_the_owner_of_a_cluster_gets_all_that_lines_need() -> None:
    kinds = [one["kind"] for one in list_cluster_objects(SETTINGS)]
    assert {"Namespace", "ResourceQuota", "ServiceAccount", "Role", "RoleBinding", "NodePool"} <= set(kinds)
