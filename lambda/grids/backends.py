"""What the functions ask of whatever trains a grid's lines: what became of a line's training, whose it is, and its end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol

from aws import executions
from aws.clients import SIDE_BY_SIDE
from aws.grids import GridStore
from aws.mpi_jobs import MpiJobs
from aws.s3 import Bucket, ObjectTooLarge
from aws.trainings import Trainings
from contract import keys, tags
from contract.execution_facts import (
    ENDED_BY,
    ENDED_CAUSE,
    Evidence,
    address_execution,
    describe_execution,
    is_marked,
    needs_evidence,
    read_report,
)
from contract.grid import Backend, Grid, GridPrefix, Line
from contract.mpi_job import read_marks, read_seal
from contract.mpi_job_facts import GRID_ENDED, PodEvidence, describe_mpi_job, find_obstacle, find_stranger
from contract.pod_files import MOST_NOTE, RESULT, read_result
from contract.training_facts import describe_training
from grids.policy import FoundTraining


class LineBackend(Protocol):
    """The trainings of lines. Every call may raise ClientError or BotoCoreError."""

    service: str
    """Who answers, for a person."""

    def find(self, line: Line, grid: Grid) -> FoundTraining | None:
        """Returns the training of the line's name; None where there never was one."""

    def stop(self, line: Line) -> None:
        """Has the training end. One that is over, or not there, is left as it is."""


class SageMakerLines:
    """Lines that are trainings of SageMaker in one region."""

    service = "SageMaker"

    def __init__(self, region: str) -> None:
        self._trainings = Trainings(region)

    def find(self, line: Line, grid: Grid) -> FoundTraining | None:
        answer = self._trainings.described(line.training)
        if answer is None:
            return None
        facts = describe_training(line, answer)
        marks = self._trainings.tags(facts.arn)
        stranger = "" if _is_tagged(line, grid, marks) else _describe_stranger(facts.arn, marks)
        return FoundTraining(facts=facts, stranger=stranger, protected=tags.PROTECTED in marks)

    def stop(self, line: Line) -> None:
        self._trainings.stop(line.training)


class ClusterLines:
    """Lines that are executions of the Train machine. Whoever protects an instance of one keeps that, and not the execution."""

    service = "Step Functions"

    def __init__(self, store: GridStore) -> None:
        self._store = store

    def find(self, line: Line, grid: Grid) -> FoundTraining | None:
        answer = executions.described(address_execution(line), SIDE_BY_SIDE)
        if answer is None:
            return None
        evidence = self._read_evidence(line) if needs_evidence(answer) else None
        facts = describe_execution(line, answer, evidence, now=time.time())
        is_ours = answer.get("input") == line.request["input"] and is_marked(line, grid)
        return FoundTraining(facts=facts, stranger="" if is_ours else f"{facts.arn}, which has another input")

    def stop(self, line: Line) -> None:
        executions.stop(address_execution(line), ENDED_BY, ENDED_CAUSE)

    def _read_evidence(self, line: Line) -> Evidence:
        prefix = keys.JobPrefix(line.training)
        report = read_report(self._store.get(prefix.result))
        return Evidence(is_admitted=self._store.head(prefix.description) is not None, report=report)


class PodLines:
    """Lines that are MPIJobs of the cluster in the home region."""

    service = "Kubernetes"

    def __init__(self, line: Line, store: GridStore) -> None:
        self._store = store
        self._jobs = MpiJobs(str(line.request["function"]))

    def find(self, line: Line, grid: Grid) -> FoundTraining | None:
        evidence, now = self._read_evidence(line, grid), time.time()
        stranger = "" if evidence.job is None else find_stranger(line, grid, evidence.job)
        if not stranger and (why := find_obstacle(evidence, now)):
            self._jobs.end(line.training, why)
            evidence = self._read_evidence(line, grid)
        facts = describe_mpi_job(line, evidence, now=now)
        if facts is None:
            return None
        is_protected = evidence.job is not None and tags.PROTECTED in read_marks(evidence.job)
        return FoundTraining(facts=facts, stranger=stranger, protected=is_protected)

    def stop(self, line: Line) -> None:
        self._jobs.end(line.training, GRID_ENDED)

    def _read_evidence(self, line: Line, grid: Grid) -> PodEvidence:
        bucket, _, folder = str(line.request["notes"]).removeprefix("s3://").partition("/")
        notes = Bucket(bucket, line.region, SIDE_BY_SIDE)
        job, pods = self._jobs.find(line.training)
        if job is None:
            submitted = self._store.head(GridPrefix(grid.id).submitted(line.index))
            return PodEvidence(job=None, was_made=submitted is not None)
        try:
            body = notes.get(f"{folder}{RESULT}", most=MOST_NOTE)
        except ObjectTooLarge:  # the code of the line may write there
            body = None
        return PodEvidence(job=job, pods=pods, result=read_result(body, read_seal(job)))


def backend_of(line: Line, store: GridStore) -> LineBackend:
    """Returns the backend that the line names."""
    match line.backend:
        case Backend.EC2:
            return ClusterLines(store)
        case Backend.KUBERNETES:
            return PodLines(line, store)
    return SageMakerLines(line.region)


def _is_tagged(line: Line, grid: Grid, marks: Mapping[str, str]) -> bool:
    """Whether the tags are those of this very line: anyone can take a name."""
    wanted = {
        tags.DEPLOYMENT: grid.deployment,
        tags.GRID: grid.id,
        tags.LINE: str(line.index),
        tags.EXECUTION: grid.execution,
    }
    return wanted.items() <= marks.items()


def _describe_stranger(arn: str, marks: Mapping[str, str]) -> str:
    whose = ", ".join(f"{key}={marks[key]}" for key in (tags.DEPLOYMENT, tags.GRID, tags.LINE) if key in marks)
    return f"{arn}; tags: {whose or 'none of ours'}"
