"""The command `logs`: what the nodes of a job write, in the order of time, and on as they write it."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from aws.clients import BRISK, client
from contract import names
from contract.aws_errors import code_of
from contract.roles import Role, name_place
from trainyard.deployment import Deployment
from trainyard.options import Command
from trainyard.patience import PatientReader, Timekeeper, keep_following
from trainyard.printer import Printer
from trainyard.stops import CannotProceed, CommandExit
from trainyard.watching import find, read_execution, read_roles, word_rank

if TYPE_CHECKING:
    from types_boto3_logs.client import CloudWatchLogsClient

EVERY_S = 3.0
OVERLAP_MS = 60_000
"""How far each look goes back behind the newest line: streams become readable at different times."""
REMEMBERED = 50_000
"""Lines by whose ids a repeat is known: more than a minute has."""
QUIET_LOOKS = 2
"""Looks without a new line after the job's end, before nothing more is expected."""
STREAM = re.compile(r"(?P<attempt>\d+)/(?P<rank>\d+)(?P<kernel>/kernel)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Of which nodes the lines are."""

    job: str
    rank: int | None = None
    attempt: int | None = None
    kernel: bool = False
    """Whether kernel messages are wanted too."""
    roles: tuple[Role, ...] = ()
    """Those of the job, by which people know its nodes."""

    def covers(self, stream: str) -> bool:
        """Whether the stream is one of these nodes'."""
        found = STREAM.fullmatch(stream.removeprefix(f"{self.job}/"))
        if found is None or (found["kernel"] and not self.kernel):
            return False
        return self.rank in (None, int(found["rank"])) and self.attempt in (None, int(found["attempt"]))

    @property
    def prefix(self) -> str:
        """Beginning of the names of their streams."""
        if self.attempt is None:
            return f"{self.job}/"
        return (
            names.log_stream(self.job, self.attempt, 0).removesuffix("0")
            if self.rank is None
            else names.log_stream(self.job, self.attempt, self.rank)
        )


@dataclass(slots=True)
class LogReader:
    """Reads a log again and again, and yields each line once."""

    group: str
    region: str
    wanted: LogFilter
    since_ms: int = 0
    count: int = 0
    """Events that were yielded."""
    _seen: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def read_new(self) -> Iterator[Mapping[str, Any]]:
        """Yields the events that no look has yielded. A group without such streams has none."""
        arguments: dict[str, Any] = {"logGroupName": self.group, "logStreamNamePrefix": self.wanted.prefix}
        if self.since_ms:
            arguments["startTime"] = max(0, self.since_ms - OVERLAP_MS)
        logs: CloudWatchLogsClient = client(
            "logs", self.region, BRISK
        )  # credentials may be others than at the look before
        for page in logs.get_paginator("filter_log_events").paginate(**arguments):
            for event in page["events"]:
                if self._is_new(event) and self.wanted.covers(event.get("logStreamName", "")):
                    self.count += 1
                    yield event

    def _is_new(self, event: Mapping[str, Any]) -> bool:
        self.since_ms = max(self.since_ms, int(event.get("timestamp", 0)))
        identity = event.get("eventId") or str(event)
        if identity in self._seen:
            return False
        self._seen[identity] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return True


def logs(
    command: Command,
    name: str,
    *,
    follow: bool,
    rank: int | None,
    attempt: int | None,
    kernel: bool,
    every_s: float = EVERY_S,
) -> int:
    """Returns the exit code."""
    deployment = command.open_deployment()
    job = find(deployment, name, ("job",))
    roles = read_roles(deployment, name)
    wanted = LogFilter(job=name, rank=rank, attempt=attempt, kernel=kernel, roles=roles)
    reading = LogReader(deployment.log_group, deployment.region, wanted)

    def show() -> int:
        if follow:
            follow_lines(deployment, reading, command.printer, every_s=every_s, clock=Timekeeper())
        else:
            print_lines(reading, command.printer)
        if not reading.count:
            where = f"{word_rank(deployment, name, rank)}{'' if attempt is None else f' in attempt {attempt}'}"
            command.printer.complain(f"{name}: there is no line{where}{' yet' if job.status.runs else ''}")
        return CommandExit.DONE

    return keep_following("job", name, command.printer, show) if follow else show()


def print_lines(reading: LogReader, printer: Printer) -> int:
    """Prints the lines that there are and that were not printed before. Returns how many."""
    before = reading.count
    try:
        for event in reading.read_new():
            _print(printer, event, reading.wanted)
    except ClientError as problem:
        if code_of(problem) != "ResourceNotFoundException":
            raise
        raise CannotProceed(
            f"logs: there is no log group {reading.group}; allowed: a deployment that has run a job"
        ) from None
    return reading.count - before


def follow_lines(
    deployment: Deployment, reading: LogReader, printer: Printer, *, every_s: float, clock: Timekeeper
) -> None:
    """Prints lines until the job has ended and its lines are out. Raises as `follow_job`."""
    patience, quiet = PatientReader(printer.say, clock), 0
    while True:
        job = patience.read(lambda: read_execution(deployment, "job", reading.wanted.job))
        before = reading.count  # lines that were printed before an error count too
        patience.read(lambda: print_lines(reading, printer))
        has_ended = job is None or not job.status.runs
        quiet = quiet + 1 if has_ended and reading.count == before else 0
        if quiet >= QUIET_LOOKS:
            return
        clock.sleep(every_s)


def _print(printer: Printer, event: Mapping[str, Any], wanted: LogFilter) -> None:
    node = str(event.get("logStreamName", "")).removeprefix(f"{wanted.job}/")
    at, text = event.get("timestamp", 0) / 1000, str(event.get("message", ""))
    if printer.as_json:
        printer.document({"at": at, "node": node, "line": text})
        return
    when = time.strftime("%H:%M:%S", time.localtime(at))
    found = STREAM.fullmatch(node)
    if found and (place := name_place(wanted.roles, int(found["rank"]))):
        node = f"{node} ({place})"
    for line in text.splitlines() or [""]:
        printer.say(f"{when} {node}  {line}")
