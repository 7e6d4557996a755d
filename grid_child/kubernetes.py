"""Every call of a child to EKS and to a cluster: creates, reads and ends the MPIJob that is its line's training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from contract.aws_errors import code_of
from contract.kubernetes_api import (
    CLUSTER_HEADER,
    LASTS_S,
    TAKEN,
    ClusterGone,
    ClusterProblem,
    KubernetesApi,
    make_token,
)
from contract.kubernetes_objects import QUOTA
from contract.mpi_job import count_nodes, read_seal, seal_job
from contract.mpi_job_facts import (
    GRID_ENDED,
    PodEvidence,
    describe_mpi_job,
    find_obstacle,
    find_stranger,
)
from contract.pod_files import MOST_NOTE, RESULT, read_result
from contract.pod_network import close_job
from contract.records import LineFacts
from grid_child.clients import client
from grid_child.plan import Work
from grid_child.policy import SubmitAnswer
from grid_child.store import Home
from grid_child.trouble import Trouble, Unfit, trouble_of

T = TypeVar("T")
DENIED = 403
NO_ROOM = ("exceeded quota", "status unknown for quota")
"""Words of Kubernetes where a quota holds an object back. A right to see the quota that is missing is none of these."""


class _Gone(Trouble):
    """There is no such cluster, and so nothing of what is asked for."""


class KubernetesLine:
    """One line as an MPIJob of a cluster of EKS."""

    service = "Kubernetes"

    def __init__(self, work: Work, home: Home, now: Callable[[], float], seal: Callable[[], str]) -> None:
        """`now`: UTC epoch seconds. `seal` returns a text that cannot be guessed."""
        self._home, self._submitted = home, work.prefix.submitted(work.line.index)
        self._seal, self._is_noted, self._is_closed = seal, False, False
        self._line, self._grid, self._now = work.line, work.grid, now
        bucket, _, folder = str(work.line.request["notes"]).removeprefix("s3://").partition("/")
        self._notes, self._folder = home.beside(bucket, work.line.region), folder
        self._opened: KubernetesApi | None = None

    @property
    def _api(self) -> KubernetesApi:
        # No cached_property: one that calls anything would hold a lock of the whole class meanwhile.
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> KubernetesApi:
        name, region = str(self._line.request["cluster"]), self._line.region
        try:
            cluster = client("eks", region).describe_cluster(name=name)["cluster"]
        except (ClientError, BotoCoreError) as problem:
            if isinstance(problem, ClientError) and code_of(problem) == ClusterGone.CODE:
                raise ClusterGone(name, region) from None
            raise trouble_of(problem, f"eks:DescribeCluster of {name}") from problem
        return KubernetesApi.of(cluster, str(self._line.request["namespace"]), lambda: make_token(self._presign(name)))

    @cached_property
    def _sts(self) -> Any:
        return client("sts", self._line.region)

    def _presign(self, cluster: str) -> str:
        """Returns an address by which STS says who this child is, for one cluster alone."""

        def name_cluster(**given: Any) -> None:
            given["request"].headers[CLUSTER_HEADER] = cluster

        moment = "before-sign.sts.GetCallerIdentity"
        self._sts.meta.events.register(moment, name_cluster)
        try:
            return str(self._sts.generate_presigned_url("get_caller_identity", ExpiresIn=LASTS_S, HttpMethod="GET"))
        except (ClientError, BotoCoreError) as problem:
            raise trouble_of(problem, "sts:GetCallerIdentity") from problem
        finally:
            self._sts.meta.events.unregister(moment, name_cluster)

    def create(self) -> tuple[SubmitAnswer, str]:
        """As ChildBackend.create. A name that is taken is asked for: it may be this line's own."""
        try:
            if full := self._find_full():
                return SubmitAnswer.QUOTA, full
            found = self._api.create(seal_job(self._line.request["job"], self._seal()))
        except ClusterProblem as problem:
            return answer_of(problem), str(problem)
        except Trouble as problem:
            return SubmitAnswer.OPEN, str(problem)
        with suppress(Trouble):  # the next look does what is missing
            self._note_submission()
            self._close(found)
        return SubmitAnswer.ACCEPTED, found

    def find(self) -> LineFacts | None:
        evidence, now = self._read(), self._now()
        if evidence.job is not None and self._is_ours(evidence.job) and (why := find_obstacle(evidence, now)):
            self._call("could not be ended", lambda: self._api.end(self._line.training, why))
            evidence = self._read()
        return describe_mpi_job(self._line, evidence, now=now)

    def name_stranger(self, facts: LineFacts) -> str:
        job = self._find_job()
        stranger = "" if job is None else find_stranger(self._line, self._grid, job)
        return f"{facts.arn}; {stranger}" if stranger else ""

    def stop(self) -> None:
        with suppress(_Gone):  # and the job with it
            self._call("could not be ended", lambda: self._api.end(self._line.training, GRID_ENDED))

    def _read(self) -> PodEvidence:
        job = self._find_job()
        if job is None:
            return PodEvidence(job=None, was_made=self._home.exists(self._submitted))
        if self._is_ours(job):
            self._note_submission()
            self._close(str(job["metadata"]["uid"]))
        # A note that is longer is cut, and then no JSON.
        body = self._notes.read_begin(f"{self._folder}{RESULT}", MOST_NOTE)
        pods = self._call("its pods", lambda: self._api.list_pods(self._line.training))
        return PodEvidence(job=job, pods=pods, result=read_result(body, read_seal(job)))

    def _note_submission(self) -> None:
        """Notes once that the job was made: whoever deletes it stops the line."""
        if not self._is_noted:
            self._home.create(self._submitted, b"{}")
            self._is_noted = True

    def _close(self, uid: str) -> None:
        """Lets only pods of this job in, once. Its machines come later than this; the job's end takes the policy along."""
        if not self._is_closed:
            policy = close_job(self._line.request["job"], uid)
            self._call("the policy of its network", lambda: self._api.close(policy))
            self._is_closed = True

    def _find_job(self) -> Mapping[str, Any] | None:
        try:
            return self._call("the MPIJob", lambda: self._api.find(self._line.training))
        except _Gone:
            return None

    def _is_ours(self, job: Mapping[str, Any]) -> bool:
        return not find_stranger(self._line, self._grid, job)

    def _find_full(self) -> str:
        """Returns why there is no room for the line now; empty where there is. Two children may see the same room at once: then the
        namespace's quota holds back the pods of one."""
        most, wanted = int(self._line.request["most_nodes"]), count_nodes(self._line.request["job"])
        taken = self._api.count_pods(QUOTA)
        if taken + wanted <= most:
            return ""
        return f"{taken} of {most} nodes of the cluster are taken, and line {self._line.index} needs {wanted}"

    def _call(self, what: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except ClusterProblem as problem:
            if not problem.status:
                self._opened = None  # EKS is asked again where the cluster is: it may be gone
            if problem.status == DENIED:
                raise Unfit(f"The cluster does not let the child do this: {what}: {problem.message}") from problem
            kind = _Gone if isinstance(problem, ClusterGone) else Trouble
            raise kind(str(problem.status or "no answer"), f"{what}: {problem.message}") from problem


def answer_of(problem: ClusterProblem) -> SubmitAnswer:
    """Returns what the answer to a creation means. A token that is refused may have come from a clock that is off, or be too new."""
    if problem.status == TAKEN:
        return SubmitAnswer.IN_USE
    if problem.status == 429:
        return SubmitAnswer.THROTTLED
    if problem.status == DENIED and any(one in problem.message for one in NO_ROOM):
        return SubmitAnswer.QUOTA
    return SubmitAnswer.REFUSED if problem.status in {400, DENIED, 404, 422} else SubmitAnswer.OPEN
