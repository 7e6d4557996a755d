"""The fake as a whole: services on one clock, and every call's way through cost, death, fault and effect."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from localaws.model import Refused
from localaws.services.sagemaker_planned import Planned
from tests.fakes.batch import FakeBatch
from tests.fakes.clock import Clock, Killed
from tests.fakes.codebuild import FakeCodeBuild
from tests.fakes.directory import Directory
from tests.fakes.ec2 import FakeEc2
from tests.fakes.ec2_catalogue import Catalogue
from tests.fakes.ecr import FakeEcr
from tests.fakes.events import Events
from tests.fakes.faults import Death, Faults, Mishap, raised
from tests.fakes.kubernetes import FakeCluster, reached
from tests.fakes.logs import Logs
from tests.fakes.queue import LETTERS, Queue
from tests.fakes.s3 import S3
from tests.fakes.states import States
from tests.fakes.sts import Sts
from tests.fakes.table import FakeTable
from tests.fakes.telling import Figures, Prices, Topics
from tests.fakes.wire import HOME, Call, connected

ACCOUNT = "123456789012"
CALL_S = 0.02
INVOKED_S = 0.1
READING = ("Get", "Head", "List", "Describe", "BatchGet", "Query", "AssumeRole")
"""How calls begin that change nothing."""


class _Mishaps(threading.local):
    """Each thread's own."""

    def __init__(self) -> None:
        self.waiting: list[Sequence[Mishap]] = []


class Aws:
    """One account. `with aws.connected():` puts it behind the process' boto3 clients."""

    def __init__(self, *, now: float, clock: Clock | None = None) -> None:
        self.clock = clock or Clock(now)
        self.events = Events(self.clock, HOME)
        self.s3 = S3(self.clock)
        self.states = States(self.clock, self.events.publish)
        self.table = FakeTable(HOME, self.clock)
        self.sts = Sts(self.clock)
        self.queue, self.letters = Queue(self.clock), Queue(self.clock, url=LETTERS)
        self.topics, self.figures, self.prices = Topics(), Figures(), Prices()
        self.directory = Directory()
        self.logs = Logs(self.clock)
        self.batch = FakeBatch(self.clock)
        self.cluster = FakeCluster(self.clock)
        self.ec2: dict[str, FakeEc2] = {}
        self.ecr: dict[str, FakeEcr] = {}
        self.codebuild = FakeCodeBuild(self.clock, ACCOUNT)
        self._sagemaker: dict[str, Planned] = {}
        self.file_systems: dict[str, Any] = {}
        """For tests: operations of EFS and FSx with their answers."""
        self.volume_keys: dict[str, dict[str, Any]] = {}
        """For tests: KMS's answers about each key, by its ARN and the operation."""
        self.faults = Faults()
        self.later: dict[str, Callable[[dict[str, Any]], None]] = {}
        """Functions that may be invoked asynchronously."""
        self.at_once: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        """Functions that may be invoked for an answer: what Lambda gives back."""
        self.calls: list[Call] = []
        """Every call that arrived, for tests to read."""
        self._mishaps = _Mishaps()
        self._number = itertools.count(1)

    @property
    def mishaps(self) -> list[Sequence[Mishap]]:
        """What the invocations that run in this thread have before them, the innermost last."""
        return self._mishaps.waiting

    @property
    def changes(self) -> list[str]:
        """The calls that changed something, or tried to."""
        changing = (call for call in self.calls if not call.operation.startswith(READING) and not _is_question(call))
        return [call.name for call in changing]

    def open_region(self, region: str, catalogue: Catalogue) -> FakeEc2:
        """Ids are unique over all regions. Rules see events of their own region: EC2 elsewhere tells home nothing."""
        publish = self.events.publish if region == HOME else lambda *_: None
        self.ec2[region] = FakeEc2(region, self.clock, catalogue, publish, self._number.__next__)
        return self.ec2[region]

    def sagemaker(self, region: str) -> Planned:
        """SageMaker of a region; every region has it, whether or not anything else of ours is there."""
        if region not in self._sagemaker:
            self._sagemaker[region] = Planned(region, self.clock)
        return self._sagemaker[region]

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Behind boto3's clients, and behind what speaks with the cluster."""
        with connected(self.answer, self.clock.time), reached(self.answer):
            yield

    def answer(self, call: Call) -> dict[str, Any]:
        """One call: 20 ms, then whatever its invocation and the faults have in store, then the service."""
        due = [one for one in self.mishaps[-1] if one.strikes(call)] if self.mishaps else []
        for one in due:
            if one.meanwhile is not None:
                one.meanwhile()
            if one.death is Death.BEFORE:
                self._kill(f"before {call.name}")
        self.clock.spend(CALL_S)
        fault = next((one.fault for one in due if one.fault is not None), None) or self.faults.take(call)
        if fault is None or fault.has_effect:
            self.calls.append(call)
            result = self._serve(call)
        if any(one.death is Death.AFTER for one in due):
            self._kill(f"after {call.name}")
        if fault is not None:
            error, waited = raised(fault, call)
            self.clock.spend(waited)
            raise error
        return result

    def _invoke(self, call: Call) -> dict[str, Any]:
        """An invocation; one without an answer begins within a second."""
        event = json.loads(call.params["Payload"])
        if _is_question(call) and (answers := self.at_once.get(call.params["FunctionName"])):
            return answers(event)
        target = self.later.get(call.params["FunctionName"])
        if target is None:
            raise Refused("ResourceNotFoundException", f"Function not found: {call.params['FunctionName']}", 404)
        self.clock.at(self.clock.now + INVOKED_S, lambda: target(event))
        return {"StatusCode": 202}

    def _kill(self, when: str) -> None:
        if self.clock.ends:
            self.clock.ends[-1] = self.clock.now  # whatever the dying process still tries ends the same way
        raise Killed(when)

    def _serve(self, call: Call) -> dict[str, Any]:
        match call.service:
            case "ec2":
                if call.region not in self.ec2:
                    raise Refused("OptInRequired", f"You are not subscribed to {call.region}", 403)
                return self.ec2[call.region].answer(call.operation, call.params)
            case "ecr":
                if call.region not in self.ecr:
                    raise Refused("RepositoryNotFoundException", "The repository does not exist")
                return self.ecr[call.region].answer(call.operation, call.params)
            case "efs" | "fsx":
                if call.operation not in self.file_systems:
                    raise Refused("FileSystemNotFound", "The file system does not exist", 404)
                return dict(self.file_systems[call.operation])
            case "kms":
                if call.params["KeyId"] not in self.volume_keys:
                    raise Refused("NotFoundException", f"Key '{call.params['KeyId']}' does not exist")
                return dict(self.volume_keys[call.params["KeyId"]][call.operation])
            case "codebuild":
                return self.codebuild.answer(call.operation, call.params)
            case "s3":
                return self.s3.answer(call)
            case "dynamodb":
                if call.region != HOME:
                    raise Refused("ResourceNotFoundException", "Requested resource not found")
                return self.table.answer(call.operation, call.params)
            case "lambda":
                return self._invoke(call)
            case "sts":
                return self.sts.answer(call)
            case "stepfunctions":
                return self.states.answer(call)
            case "sqs":
                return (self.letters if call.params["QueueUrl"] == LETTERS else self.queue).answer(call)
            case "sns":
                return self.topics.answer(call)
            case "cloudwatch":
                return self.figures.answer(call)
            case "pricing":
                return self.prices.answer(call)
            case "ssm":
                return self.directory.ssm(call)
            case "cloudformation":
                return self.directory.cloudformation(call)
            case "iam":
                return self.directory.iam(call)
            case "resource-groups":
                return self.directory.resource_groups(call)
            case "secretsmanager":
                return self.directory.secretsmanager(call)
            case "logs":
                return self.logs.answer(call)
            case "eks":
                return self.cluster.describe(call.params["name"])
            case "kubernetes":
                return self.cluster.serve(call.params)
            case "batch":
                return self.batch.answer(call.operation, call.params)
            case "sagemaker":
                return self.sagemaker(call.region).answer(call.operation, call.params)
        raise AssertionError(f"The fake has no {call.service}")


def _is_question(call: Call) -> bool:
    """Whether a function is invoked for its answer. What that function changes are calls of its own."""
    return call.name == "lambda:Invoke" and call.params.get("InvocationType") != "Event"
