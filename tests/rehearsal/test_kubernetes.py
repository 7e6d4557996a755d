"""One image, one line, three backends: SageMaker with MPI, our clusters with MPI, and an MPIJob of Kubernetes; and how such a job ends.

The API server, the operator and the kubelet are place-holders (localaws/services/kubernetes.py): pods are processes of this computer in
the root of their image, whose mpirun is real.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from contract import names
from contract.grid import Backend, LineOutcome, Record
from localaws.conditions import Conditions
from localaws.containers import real
from localaws.iam.permissions import granted, judge, needed
from localaws.iam.simulator import Policies
from localaws.services import kubernetes
from localaws.testing.roots import NEEDED
from localaws.testing.waiting import HANG_S, until
from rehearsal import grid
from rehearsal.account import DeployedAccount
from rehearsal.grid import GridJob
from rehearsal.yard import Yard
from tests.rehearsal.jobs import DENIALS, succeeded
from tests.rehearsal.regions import REGIONS

pytestmark = [pytest.mark.rehearsal, pytest.mark.images, NEEDED]
EXAMPLE = Path(__file__).parents[2] / "examples" / "mpi_digits"
LINE: Mapping[str, Any] = json.loads((EXAMPLE / "line.jsonl").read_text()) | {"instance_type": "ml.g5.xlarge"}
THREE = [{"backend": one.value} for one in Backend]
OF_THE_CLUSTER = {"SeeTheCluster", "AskTheCluster", "ReadNotesOfPods", "NoteSubmissions", "DescribeTypes"}
"""Statements that only a cluster brings."""
SOMETIMES = {
    ("Drain", "AskTheCluster"),
    ("Reaper", "AskTheCluster"),
    ("GridCleanup", "AskTheCluster"),
    ("GridCleanup", "ReadNotesOfPods"),
    ("GridCollect", "AskTheCluster"),
    ("GridCollect", "ReadNotesOfPods"),
    ("Search", "DescribeTypes"),
}
"""Needed by a destroy, for lines whose children are gone, or by a search, of which there is none here."""
SPACE = names.pod_namespace("trainyard")


def bare_image(folder: Path) -> Path:
    """A context whose image has neither mpirun nor sshd."""
    (folder / "Dockerfile").write_text('FROM public.ecr.aws/docker/library/python:3.13-slim-bookworm\nCMD ["python"]\n')
    given = {name: one for name, one in json.loads((EXAMPLE / "build.json").read_text()).items() if name != "base"}
    (folder / "build.json").write_text(json.dumps(given | {"tag": "bare-1"}))
    return folder


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    work = tmp_path_factory.mktemp("kubernetes") / "work"
    settings = {"regions": REGIONS[:1], "kubernetes": {"cluster": "lab", "max_nodes": 4}}
    wanted = ["workflow", "builds", "grid", "images", "reaper", "kubernetes"]
    # With every event: a grid whose end no event tells has no report.
    conditions = Conditions(speed=20.0, events_lost=0.0)
    with Yard(work, conditions, settings=settings, wanted=wanted, real_images=True) as made:
        assert not real.lacks()
        for example in (EXAMPLE, bare_image(tmp_path_factory.mktemp("bare"))):
            grid.build_image(made, example)
        yield made


@pytest.fixture(scope="module")
def done(yard: Yard) -> GridJob:
    """The same line three times, which differ in the one word."""
    text = "".join(f"{json.dumps(one)}\n" for one in THREE)
    address = grid.upload_manifest(yard, text, "three.jsonl")
    job = grid.start(yard, {"manifest": address, "defaults": dict(LINE)}, "three")
    job.wait(HANG_S)
    succeeded(job)
    return job


@pytest.fixture(scope="module")
def records(done: GridJob) -> list[Record]:
    return sorted(done.results(), key=lambda one: one.index)


def test_lines_that_differ_in_one_word_end_with_the_same_metric(records: list[Record]) -> None:
    assert [one.reason for one in records] == ["", "", ""]
    assert [one.backend for one in records] == list(Backend)
    assert len({round(one.metrics["metric"], 6) for one in records}) == 1
    assert records[0].metrics["metric"] > 0.9


def test_one_table_has_all_three_with_the_same_columns(done: GridJob) -> None:
    rows = list(csv.DictReader(io.StringIO((done.read(done.prefix.results_csv) or b"").decode(), newline="")))
    assert [row["backend"] for row in rows] == [one.value for one in Backend]
    assert all(float(row["cost_usd"]) > 0 and float(row["billable_seconds"]) > 0 for row in rows)
    assert all(row["log"].startswith("https://") and row["model_artifact"].startswith("s3://") for row in rows)


def test_the_model_and_the_checkpoints_are_under_the_lines_own_prefix(done: GridJob, yard: Yard) -> None:
    (line,) = (one for one in done.lines() if one.backend is Backend.KUBERNETES)
    folder = f"{done.prefix.bytes(line.index)}"
    pages = yard.client("s3").get_paginator("list_objects_v2").paginate(Bucket=yard.places.bytes_, Prefix=folder)
    found = {one["Key"].removeprefix(folder) for page in pages for one in page.get("Contents", [])}
    assert found == {
        f"{line.training}/output/model.tar.gz",
        "checkpoints/weights.npz",
        "pods/log.txt",
        "pods/result.json",
    }


def test_the_pods_were_two_and_are_gone(done: GridJob) -> None:
    (cluster,) = kubernetes.clusters()
    (line,) = (one for one in done.lines() if one.backend is Backend.KUBERNETES)
    run = next(one for one in cluster.operator.runs.values() if one.name == line.training)
    assert len(run.pods) == LINE["instance_count"] == 2
    assert all(one.code is not None for pod in run.pods for one in pod.containers.values())
    assert cluster.model.nodes == []
    assert (SPACE, line.training) in cluster.model.policies


@pytest.mark.parametrize(("launcher", "lacks"), [(True, "mpirun"), (False, "sshd")])
def test_an_image_without_what_mpi_needs_is_refused_in_the_first_pods_words(
    yard: Yard, launcher: bool, lacks: str
) -> None:
    line = {**LINE, "backend": "kubernetes", "image": "images:bare-1", "instance_count": 1 if launcher else 2}
    address = grid.upload_manifest(yard, json.dumps(line), f"{lacks}.jsonl")
    job = grid.start(yard, {"manifest": address}, f"without-{lacks}")
    job.wait(HANG_S)
    (record,) = job.results()
    assert record.outcome is LineOutcome.FAILED
    assert f"he image has no {lacks}, which its line needs" in record.reason


def test_a_grid_that_is_stopped_leaves_no_pod(yard: Yard) -> None:
    endless = {**LINE, "backend": "kubernetes", "hyperparameters": {"steps": 1_000_000}}
    address = grid.upload_manifest(yard, json.dumps(endless), "endless.jsonl")
    job = grid.start(yard, {"manifest": address}, "stopped-pods")
    (cluster,) = kubernetes.clusters()

    def train() -> bool:
        return any(one["status"]["phase"] == "Running" for one in cluster.model.pods.values())

    until(train)
    yard.client("stepfunctions").stop_execution(executionArn=job.arn, error="Enough", cause="a person stopped it")
    until(lambda: job.records() != [])  # a report may say before this that pods still run
    (record,) = job.records()
    assert record.outcome is LineOutcome.STOPPED
    assert not [one for one in cluster.model.pods.values() if one["status"]["phase"] == "Running"]
    assert cluster.model.nodes == []


@pytest.fixture(scope="module")
def account(yard: Yard) -> DeployedAccount:
    return yard.account()


@pytest.fixture(scope="module")
def policies(account: DeployedAccount) -> dict[str, Policies]:
    """Those of all roles, while there are stacks."""
    return dict(account.policies())


def test_no_call_was_denied_and_no_right_to_the_cluster_is_spare(
    yard: Yard, account: DeployedAccount, policies: dict[str, Policies]
) -> None:
    of_cluster = {one.principal for one in granted(policies) if one.statement in OF_THE_CLUSTER}
    calls = list(yard.aws.recorder.calls)
    assert [call.name for call in calls if call.role in of_cluster and call.error in DENIALS] == []
    # A node hears a denial for what is not there: a job may list less than a child.
    judged = judge([one for one in calls if one.role in policies and one.error not in DENIALS], policies, account)
    assert [(one.call.name, one.request, one.answer.error) for one in judged if not one.answer.allowed] == []
    spare = {
        (re.sub(r"^.*-([A-Za-z]+?)(?:Role|ServiceRole)[0-9A-F]{8}-.*$", r"\1", one.principal), one.statement)
        for one in granted(policies) - needed(judged, policies)
        if one.statement in OF_THE_CLUSTER
    }
    assert spare - SOMETIMES == set()


def test_a_destroy_deletes_every_job_of_the_cluster_and_its_entries(yard: Yard) -> None:
    endless = {**LINE, "backend": "kubernetes", "hyperparameters": {"steps": 1_000_000}}
    grid.start(yard, {"manifest": grid.upload_manifest(yard, json.dumps(endless), "doomed.jsonl")}, "doomed-pods")
    (cluster,) = kubernetes.clusters()
    until(lambda: any(one["status"]["phase"] == "Running" for one in list(cluster.model.pods.values())))
    yard.cdk.destroy(yard.assembly)
    assert (cluster.model.jobs, cluster.model.policies, cluster.model.nodes) == ({}, {}, [])
    until(lambda: cluster.model.pods == {})
    assert (cluster.members, cluster.pod_roles) == ({}, {})
