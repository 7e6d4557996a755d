"""The operator of a fake cluster: pods of MPIJobs come, train, end, fail and go, and note what the keeper of a pod notes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from contract.mpi_job import read_seal
from contract.pod_files import RESULT, PodResult, describe_result
from localaws.services.kubernetes_model import build_pods, is_over, is_suspended
from tests.fakes.aws import Aws

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLife:
    """What befalls an MPIJob. Times in seconds from its making."""

    placed_s: float = 30.0
    """Until it has its machines, and its pods begin."""
    ends_s: float = 120.0
    cleared_s: float = 20.0
    """From a stop until no pod of it is left."""
    fails: str = ""
    """What the launcher's pod says at its end; empty where it ends well."""
    worker_fails: str = ""
    """What a worker says, whereupon the launcher is never made."""
    metric: float | None = 0.5
    saves: bool = True
    """Whether the keeper notes that everything is saved."""


@dataclass
class PodJobs:
    """All MPIJobs of the fake's cluster."""

    aws: Aws
    life: Callable[[str], PodLife] = lambda _: PodLife()
    running: set[str] = field(default_factory=set)
    """Names of jobs that have pods."""
    made: list[str] = field(default_factory=list)
    """Names in the order in which jobs were made."""
    spans: list[tuple[str, float, float]] = field(default_factory=list)
    """Name, and when its pods began and were gone."""
    _begun: dict[str, float] = field(default_factory=dict)
    _uids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.cluster = self.aws.cluster
        self.cluster.changed, self.cluster.deleted = self._change, self._clear

    def _change(self, job: Document) -> None:
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        if uid not in self._uids:
            self._uids.add(uid)
            self.made.append(name)
            self.cluster.say(job, "Created", "MPIJobCreated")
            self._later(self.life(name).placed_s, lambda: self._begin(job))
        elif is_suspended(job) and not is_over(job):
            self.cluster.suspend(job)
            self._later(self.life(name).cleared_s, lambda: self._save_and_clear(job))

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self.aws.clock.at(self.aws.clock.now + seconds, action)

    def _lives(self, job: Document) -> bool:
        """Whether it is still the object of its name, and is to have pods."""
        key = (job["metadata"]["namespace"], job["metadata"]["name"])
        return self.cluster.jobs.get(key) is job and not is_suspended(job)

    def _begin(self, job: Document) -> None:
        if not self._lives(job):
            return
        name = job["metadata"]["name"]
        life = self.life(name)
        for pod in build_pods(job):
            pod["spec"]["nodeName"], pod["status"]["phase"] = "machine", "Running"
            key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
            if life.worker_fails and "-worker-" in key[1]:
                pod["status"] = end_pod(127, life.worker_fails)
            elif life.worker_fails:
                continue  # the operator waits for its workers
            self.cluster.pods[key] = pod
        self.running.add(name)
        self._begun[name] = self.aws.clock.now
        if not life.worker_fails:
            self.cluster.say(job, "Running", "MPIJobRunning")
            self._later(life.ends_s, lambda: self._end(job, life))

    def _end(self, job: Document, life: PodLife) -> None:
        if not self._lives(job):
            return
        if life.fails:
            for pod in self.cluster.pods_of(job):
                if "-launcher" in pod["metadata"]["name"]:
                    pod["status"] = end_pod(1, life.fails)
            self.cluster.say(job, "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        else:
            self.cluster.say(job, "Succeeded", "MPIJobSucceeded", f"MPIJob {job['metadata']['name']} succeeded")
        if life.saves:
            self._note_result(job, life)
        for pod in self.cluster.pods_of(job):
            pod["status"].update(phase=pod["status"]["phase"] if life.fails else "Succeeded")
            if "-worker-" in pod["metadata"]["name"]:
                self.cluster.pods.pop((pod["metadata"]["namespace"], pod["metadata"]["name"]))
            elif pod["status"]["phase"] == "Running":
                pod["status"]["phase"] = "Succeeded"
        self._over(job)

    def _save_and_clear(self, job: Document) -> None:
        if job["metadata"]["name"] in self.running and self.life(job["metadata"]["name"]).saves:
            self._note_result(job, self.life(job["metadata"]["name"]))
        self._clear(job)

    def _clear(self, job: Document) -> None:
        self.cluster.remove_pods(job)
        self._over(job)

    def _over(self, job: Document) -> None:
        name = job["metadata"]["name"]
        if name in self.running:
            self.running.discard(name)
            self.spans.append((name, self._begun[name], self.aws.clock.now))

    def _note_result(self, job: Document, life: PodLife) -> None:
        metrics = {} if life.metric is None else {"loss": life.metric}
        result = PodResult(ended_at=self.aws.clock.now, model=True, metrics=metrics)
        self._note(job, RESULT, describe_result(result, read_seal(job)))

    def _note(self, job: Document, name: str, document: Document) -> None:
        pod = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
        (notes,) = {
            one["value"] for each in pod["initContainers"] for one in each["env"] if one["name"] == "TRAINYARD_NOTES"
        }
        bucket, _, folder = notes.removeprefix("s3://").partition("/")
        self.aws.s3.write(bucket, f"{folder}{name}", json.dumps(document).encode())


def end_pod(code: int, message: str) -> Document:
    """The status of a pod whose training has ended so."""
    state = {"terminated": {"exitCode": code, "message": message, "reason": "Error"}}
    return {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"name": "training", "state": state}]}


FAILS = PodLife(fails="ValueError: no such column")
