"""The functions as the Workflow stack deploys them: their handlers, environments, time-outs and triggers, on the fake."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import botocore.endpoint

import launcher.handler
from attendant.noise import hints_seen
from aws import prices
from contract import items, names
from contract.environments import (
    VARIABLE_PREFIX,
    AdmissionEnvironment,
    ArtifactCheckEnvironment,
    AttendantEnvironment,
    CheckpointLimits,
    CleanupEnvironment,
    DrainEnvironment,
    LauncherEnvironment,
    TerminatorEnvironment,
    ZoneLookupEnvironment,
)
from contract.image_environments import OwnImagesEnvironment
from contract.timings import (
    AttendantTiming,
    CleanupTiming,
    DrainTiming,
    LauncherTiming,
    OwnImagesTiming,
    TerminatorTiming,
)
from tests.builders import ADMISSION, IMAGE, JOB, JOB_ROLE, JOB_ROLES, NODE_ROLE, TOPIC
from tests.fakes.aws import Aws
from tests.fakes.clock import Killed
from tests.fakes.context import context
from tests.fakes.events import Event
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE
from tests.fakes.faults import Mishap
from tests.fakes.queue import URL
from tests.fakes.state import TABLE

ROOT = Path(__file__).parents[2]
USER_DATA = ROOT / "node" / "user_data.sh"
PROFILE = "arn:aws:iam::123456789012:instance-profile/yard-node"
TIMEOUTS = {
    "admission": 180.0,
    "launcher": 300.0,
    "attendant": 60.0,
    "artifact_check": 300.0,
    "terminator": 120.0,
    "cleanup": 120.0,
    "drain": 300.0,
    "region_check": 120.0,
    "service_roles": 120.0,
    "zone_lookup": 120.0,
    "default_group": 120.0,
    "grid_collect": 900.0,
    "grid_cleanup": 900.0,
    "own_images": 60.0,
}
BUILD = MACHINE.replace(names.machine(JOB.deployment), names.platform_machine(JOB.deployment))
CLOCK_S = 60.0
TOLD = {"stopping", "stopped", "shutting-down", "terminated"}
"""States for which the workflow's rule wakes the attendant."""
_HANDLERS: dict[str, Callable[..., Any]] = {name: import_module(f"{name}.handler").handler for name in TIMEOUTS}
_OURS = frozenset(path.parent.name for path in (ROOT / "lambda").glob("*/__init__.py"))
"""The functions' packages, and the rooms that they share."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an invocation ended: `error` is empty on success, as Step Functions names it otherwise."""

    value: Any = None
    error: str = ""
    cause: str = ""
    problem: Exception | None = None


class OneByOne:
    """A ThreadPoolExecutor whose threads take turns, so that a test is the same every time."""

    def __init__(self, _at_once: int) -> None:
        pass

    def __enter__(self) -> OneByOne:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except BaseException as problem:
            future.set_exception(problem)
        return future

    def map(self, function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        return iter([function(item) for item in items])


@lru_cache(maxsize=64)
def _write_environment(deployment: str, bucket: str, regions: tuple[str, ...]) -> Mapping[str, str]:
    """The variables of all functions but Admit's, which a test may change."""
    timing = JOB.timing
    ours: dict[str, Any] = {"deployment": deployment, "bucket": bucket, "table": TABLE}
    ending = ours | {"instance_profile": PROFILE, "regions": regions}
    return (
        LauncherEnvironment(
            **ours,
            node_role=NODE_ROLE,
            home_region=JOB.home_region,
            instance_profile=PROFILE,
            timing=timing.of(LauncherTiming),
        ).write()
        | ArtifactCheckEnvironment(**ours, node_role=NODE_ROLE).write()
        | AttendantEnvironment(
            deployment=deployment,
            table=TABLE,
            node_role=NODE_ROLE,
            job_role=JOB_ROLE,
            training_roles=JOB_ROLES,
            checkpoints=CheckpointLimits(oldest=3.0, longest_commit=1.0),
            topic=TOPIC,
            timing=timing.of(AttendantTiming),
        ).write()
        | OwnImagesEnvironment(
            deployment=deployment,
            bucket=bucket,
            account="123456789012",
            suffix="amazonaws.com",
            home_region=JOB.home_region,
            regions=regions,
            build_machine=BUILD,
            timing=timing.of(OwnImagesTiming),
        ).write()
        | TerminatorEnvironment(**ending, timing=timing.of(TerminatorTiming)).write()
        | ZoneLookupEnvironment(deployment=deployment, region=JOB.home_region).write()
        | CleanupEnvironment(**ending, machine=MACHINE, queue=URL, timing=timing.of(CleanupTiming)).write()
        | DrainEnvironment(
            **ending,
            machine=MACHINE,
            grid_machine=GRID_MACHINE,
            search_machine=SEARCH_MACHINE,
            keep_data=True,
            timing=timing.of(DrainTiming),
        ).write()
    )


class Functions:
    """Invokes handlers; `installed()` puts their environment, their clock and the fake in place."""

    def __init__(self, fake: Aws, *, bucket: str = JOB.home_bucket, deployment: str = JOB.deployment) -> None:
        self.aws, self.bucket, self.deployment = fake, bucket, deployment
        self.number = 0
        self.log: list[tuple[float, str, str]] = []
        """Time, function and outcome of every invocation."""
        self.admission: AdmissionEnvironment = replace(ADMISSION, regions=tuple(fake.ec2), images={"x86_64": IMAGE.id})
        self.own: dict[str, dict[str, str]] = {}
        """Variables of single functions, on top of those of all."""

    @contextmanager
    def installed(self) -> Iterator[None]:
        environment = {
            **_write_environment(self.deployment, self.bucket, tuple(self.aws.ec2)),
            **self.admission.write(),
            # All read one environment here, so it has every duration.
            f"{VARIABLE_PREFIX}TIMING": json.dumps(asdict(self.admission.timing)),
        }
        with ExitStack() as stack:
            stack.enter_context(self.aws.connected())
            stack.enter_context(mock.patch.dict(os.environ, environment))
            stack.enter_context(mock.patch.object(launcher.handler, "SCRIPT", USER_DATA))
            stack.enter_context(_swapped((*_modules_with(time), botocore.endpoint), "time", self.aws.clock))
            stack.enter_context(_swapped(_modules_with(ThreadPoolExecutor), "ThreadPoolExecutor", OneByOne))
            stack.enter_context(quiet(*_HANDLERS))
            prices.forget()
            hints_seen.forget()
            self.aws.at_once["attendant"] = self._invoke_attendant
            yield

    def invoke(self, name: str, event: Mapping[str, Any], mishaps: Sequence[Mishap] = ()) -> Outcome:
        """Runs a handler for at most its function's time-out."""
        self.number += 1
        own = self.own.get(name)
        # Without variables of its own: the patch would write the whole environment anew each time.
        with mock.patch.dict(os.environ, own) if own else nullcontext():
            outcome = invoked(
                self.aws, _HANDLERS[name], event, f"invocation-{self.number}", TIMEOUTS[name], mishaps, function=name
            )
        self.log.append((self.aws.clock.now, name, outcome.error or "ok"))
        return outcome

    def _invoke_attendant(self, event: dict[str, Any]) -> dict[str, Any]:
        """Lambda's answer to a caller that waits for the attendant's."""
        outcome = self.invoke("attendant", event)
        said = {"errorType": outcome.error, "errorMessage": outcome.cause} if outcome.error else outcome.value
        return {
            "StatusCode": 200,
            **({"FunctionError": "Unhandled"} if outcome.error else {}),
            "Payload": json.dumps(said).encode(),
        }

    def clean_up(self) -> None:
        """The workflow's rule on executions that ended without success, its queue, and the function behind it."""
        self.aws.events.targets.append((_without_success, self.aws.queue.take))
        self.aws.queue.feed(lambda event: self.invoke("cleanup", event).value)

    def wake(self, target: Callable[[Event], None]) -> None:
        """What wakes the attendant: the clock, urgent reports in the table's stream, instances that end, and itself."""
        self.aws.events.every(CLOCK_S, target)
        self.aws.events.targets.append((_ending, lambda event: target(_from_queue(event))))
        self.aws.table.feed(TABLE, target, fits=_urgent, retries=2, bisect=True)
        self.aws.later["attendant"] = target


def invoked(
    aws: Aws,
    handler: Callable[..., Any],
    event: Mapping[str, Any],
    name: str,
    timeout_s: float,
    mishaps: Sequence[Mishap] = (),
    *,
    function: str = "",
) -> Outcome:
    """How an invocation of this name ends; whatever the handler raises becomes the outcome."""
    clock = aws.clock
    end = clock.now + timeout_s
    clock.ends.append(end)
    aws.mishaps.append(mishaps)
    try:
        return Outcome(handler(dict(event), context(clock, name, end, function)))
    except Killed as killed:
        return Outcome(error="Sandbox.Timedout", cause=str(killed))
    except Exception as problem:
        return Outcome(error=type(problem).__name__, cause=str(problem), problem=problem)
    finally:
        clock.ends.pop()
        aws.mishaps.pop()


@contextmanager
def _swapped(modules: Iterable[ModuleType], name: str, other: Any) -> Iterator[None]:
    """Gives the name in these modules another value. `mock.patch` does the same, and takes longer for all of them than most tests do."""
    before = [(module, getattr(module, name)) for module in modules]
    for module, _ in before:
        setattr(module, name, other)
    try:
        yield
    finally:
        for module, one in before:
            setattr(module, name, one)


def _modules_with(thing: Any) -> list[ModuleType]:
    """The functions' modules that imported `thing` under its own name."""
    ours = [module for name, module in sys.modules.items() if name.partition(".")[0] in _OURS]
    return [module for module in ours if getattr(module, thing.__name__, None) is thing]


def _without_success(event: Event) -> bool:
    return event["source"] == "aws.states" and event["detail"]["status"] in {"FAILED", "TIMED_OUT", "ABORTED"}


def _urgent(record: Mapping[str, Any]) -> bool:
    return items.URGENT in record["dynamodb"].get("NewImage", {})


def _from_queue(event: Event) -> dict[str, Any]:
    """As Lambda hands over the message that a rule puts into a queue."""
    return {"Records": [{"eventSource": "aws:sqs", "messageId": "m-1", "body": json.dumps(event)}]}


def _ending(event: Event) -> bool:
    return event["source"] == "aws.ec2" and event["detail"].get("state") in TOLD


@contextmanager
def quiet(*functions: str) -> Iterator[None]:
    """Without the functions' log lines, which nobody reads here and which cost more than the calls."""
    loggers = [logging.getLogger(name) for name in (*functions, "aws_lambda_powertools")]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)
