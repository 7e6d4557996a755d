"""MPIJobs of a cluster, for functions that are in no network: each call is an invocation of the function that is in the cluster's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError

from aws.functions import FunctionFailed, invoke
from contract.cluster_calls import PodCall, PodJob, PodVerb
from contract.codec import build


class ClusterAway(BotoCoreError):
    """The function could not speak with the cluster, or the cluster refused. The message says why."""

    fmt = "The cluster does not answer: {why}"


@dataclass(frozen=True, slots=True)
class MpiJobs:
    """Raises ClientError, or ClusterAway."""

    function: str
    """Its name."""

    def find(self, name: str) -> tuple[Mapping[str, Any] | None, Sequence[Mapping[str, Any]]]:
        """Returns the MPIJob, None where there is none of that name, and its pods."""
        found = self._call(PodCall(verb=PodVerb.FIND, name=name))
        return found["job"], found["pods"]

    def end(self, name: str, why: str) -> None:
        """Has its pods removed. One that is not there is left so."""
        self._call(PodCall(verb=PodVerb.END, name=name, why=why))

    def delete(self, name: str) -> None:
        self._call(PodCall(verb=PodVerb.DELETE, name=name))

    def listed(self, *, only_open: bool = False) -> list[PodJob]:
        """Returns all that are the deployment's, those that are over too; with `only_open` without those that were seen to be over."""
        found = self._call(PodCall(verb=PodVerb.LIST_OPEN if only_open else PodVerb.LIST))
        return [build(PodJob, one, "jobs") for one in found["jobs"]]

    def _call(self, call: PodCall) -> Any:
        try:
            return invoke(self.function, {"verb": call.verb.value, "name": call.name, "why": call.why})
        except FunctionFailed as problem:
            raise ClusterAway(why=str(problem)) from None
