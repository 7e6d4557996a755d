"""An account with a reaper in which anything may happen, and a second opinion on everything that it ends."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from botocore.exceptions import BotoCoreError, ClientError

from aws import pieces
from contract import tags
from localaws.services.ec2_instance import NEVER, Machine
from tests.builders import JOB, PLACE
from tests.fakes.ec2 import FakeEc2
from tests.fakes.executions import Execution
from tests.fakes.faults import Mishap
from tests.fakes.functions import PROFILE, Outcome
from tests.fakes.reaping import ENVIRONMENT, HOUR, PERIOD_S, Reaping, put
from tests.fakes.yard import ABROAD, deployed
from tests.properties.world import rude

PIECE = 150
"""Bytes: a few marks."""
GRACE_S, SECOND_LOOK_S, AFTER_DEADLINE_S = 600.0, 180.0, 120.0
LONGEST_S = ENVIRONMENT.max_hours * HOUR + HOUR
OURS = JOB.deployment
DEPLOYMENTS: tuple[dict[str, str], ...] = (
    {},
    {tags.DEPLOYMENT: "other"},
    {tags.DEPLOYMENT: f"{OURS} "},
    {tags.DEPLOYMENT: f" {OURS}"},
    {tags.DEPLOYMENT: OURS.upper()},
    {tags.DEPLOYMENT: f"{OURS}-2"},
    {tags.DEPLOYMENT: f"{OURS}*"},
    {tags.DEPLOYMENT: ""},
    {tags.DEPLOYMENT.upper(): OURS},
    {f"{tags.DEPLOYMENT} ": OURS},
    {f" {tags.DEPLOYMENT}": OURS},
    {tags.DEPLOYMENT.replace(":", "-"): OURS},
    {f"x{tags.DEPLOYMENT}": OURS},
    {"deployment": OURS, tags.NAME: OURS},
)
"""Tags that are none of ours, looking as much like it as they can."""
PROFILES = ("", f"{PROFILE}-2", PROFILE.replace("yard", "Yard"), PROFILE.replace("123456789012", "210987654321"))
READS = ("ec2:Describe*", "ec2:DescribeInstances", "dynamodb:GetItem", "dynamodb:*", "stepfunctions:*", "*")
ACTS = ("ec2:TerminateInstances", "ec2:TerminateInstances", "dynamodb:PutItem", "sns:Publish")


def readable(text: str, born: float) -> float | None:
    """The deadline, by a reading of its own."""
    if not text or any(one not in "0123456789" for one in text) or len(text) > 12:
        return None
    return float(text) if born - 14 * 86_400 <= int(text) <= born + LONGEST_S else None


@dataclass
class World:
    """Everything that a rule may touch."""

    two_regions: bool = True
    in_pieces: bool = False
    """The marks are kept as if they were too long for one item."""
    surprises: list[str] = field(default_factory=list)
    """What must never happen, and did."""
    armed: list[Mishap] = field(default_factory=list)
    """What befalls the next pass."""
    gone_at: dict[str, float] = field(default_factory=dict)
    """Execution to when Step Functions forgot it."""
    changed_at: dict[str, float] = field(default_factory=dict)
    """Instance to when somebody last touched its tags, or AWS refused to end it."""
    well_since: float = math.inf
    """Since when the reaper has looked every five minutes with nothing in its way."""

    def __post_init__(self) -> None:
        self.aws = deployed(places=(PLACE, ABROAD) if self.two_regions else (PLACE,))
        self.reaping = Reaping(self.aws)
        self.executions = self.aws.states.executions
        self.regions: tuple[FakeEc2, ...] = tuple(self.aws.ec2.values())
        self._ended_by: Counter[int] = Counter()
        """Pass to how many it ended before their deadline."""
        for ec2 in self.regions:
            self._watch(ec2)
        self._installed = ExitStack()
        self._installed.enter_context(self.reaping.installed())
        self.aws.table.knobs = rude()
        if self.in_pieces:
            self._installed.enter_context(mock.patch.object(pieces, "PIECE", PIECE))
        self.jobs = [self.executions.begin("job-0")]

    def close(self) -> None:
        self._installed.close()

    @property
    def now(self) -> float:
        return self.aws.clock.now

    def machines(self) -> list[Machine]:
        return [machine for ec2 in self.regions for machine in ec2.machines.values()]

    def launch(self, place: int, marks: dict[str, str], *, age: float, profile: str = PROFILE) -> Machine:
        machine = put(self.regions[place % len(self.regions)], marks, launched_at=self.now - age, profile=profile)
        self.changed_at[machine.id] = self.now
        return machine

    def retag(self, machine: Machine, marks: dict[str, str], remove: str = "") -> None:
        if remove:
            machine.tags.pop(remove, None)
        machine.tags |= marks
        self.changed_at[machine.id] = self.now

    # Passes

    def run_pass(self, event: dict[str, Any] | None = None) -> Outcome:
        """A pass, with what was armed for it."""
        mishaps, self.armed = self.armed, []
        outcome = self.reaping.run(event, mishaps)
        unsent = isinstance(outcome.problem, ClientError | BotoCoreError) and (
            "Publish" in outcome.cause or "sns." in outcome.cause
        )
        if outcome.error not in {"", "Unfinished", "Sandbox.Timedout"} and not unsent:
            self.surprises.append(f"{outcome.error}: {outcome.cause}")
        for bug in ("KeyError", "TypeError", "AttributeError", "AssertionError", "IndexError", "ValueError"):
            if bug in outcome.cause or bug == outcome.error:
                self.surprises.append(f"{outcome.error}: {outcome.cause}")
        return outcome

    def scheduled(self) -> None:
        """Five minutes pass, then the reaper looks."""
        troubled = self.armed or self.aws.faults.waiting or any(not ec2.pages.life_s for ec2 in self.regions)
        self.aws.clock.run(PERIOD_S)
        self.surprises += self.overdue()
        outcome = self.run_pass()
        if troubled or outcome.error == "Sandbox.Timedout":
            self.well_since = math.inf
        elif self.well_since == math.inf:
            self.well_since = self.now

    def report_only(self) -> None:
        """I9: no mutating call at all."""
        before = len(self.aws.calls)
        self.armed = [one for one in self.armed if one.meanwhile is None]  # another pass may well change something
        self.run_pass({"report_only": True})
        changing = ("Put", "Delete", "Terminate", "Cancel", "Create", "Publish", "Start", "Stop")
        made = [call.name for call in self.aws.calls[before:] if call.operation.startswith(changing)]
        assert made == [], f"report-only made {made}"

    def silence(self, seconds: float) -> None:
        """The reaper is dead for a while."""
        self.aws.clock.run(seconds)
        self.well_since = math.inf

    def heal(self) -> None:
        self.armed = []
        self.aws.faults.waiting.clear()
        for ec2 in self.regions:
            ec2.lag_s, ec2.pages.size, ec2.pages.life_s = 0.5, 1000, 3600.0
        for machine in self.machines():
            if machine.stuck or machine.protected:
                machine.stuck = machine.protected = False
                self.changed_at[machine.id] = self.now

    # A second opinion

    def _watch(self, ec2: FakeEc2) -> None:
        end = ec2.end

        def watched(machine: Machine, code: str, message: str) -> None:
            if machine.ending_at == NEVER:
                self._ends(machine)
            end(machine, code, message)

        ec2.end = watched  # type: ignore[method-assign]

    def _ends(self, machine: Machine) -> None:
        """Called as the reaper ends something."""
        wrong = self.why_not(machine)
        if wrong:
            self.surprises.append(f"{machine.id} {machine.tags} was ended: {wrong}")
        if not self.late(machine):
            number = self.reaping.passes
            self._ended_by[number] += 1
            ours = sum(one.tags.get(tags.DEPLOYMENT) == OURS for one in self.machines())
            if self._ended_by[number] > max(ENVIRONMENT.max_least, ENVIRONMENT.max_share * ours):
                self.surprises.append(f"a pass ended {self._ended_by[number]} before their deadline")

    def late(self, machine: Machine) -> bool:
        """Whether it is ours and its deadline has passed by two minutes, for as long as it lives at least."""
        deadline = readable(machine.tags.get(tags.DEADLINE, ""), machine.launched_at)
        ours = machine.tags.get(tags.DEPLOYMENT) == OURS
        return ours and deadline is not None and self.now >= max(deadline, machine.launched_at) + AFTER_DEADLINE_S

    def why_not(self, machine: Machine) -> str:
        """Why the machine must not be ended now; empty where it may be."""
        deployment, age = machine.tags.get(tags.DEPLOYMENT), self.now - machine.launched_at
        profile = (machine.request.get("IamInstanceProfile") or {}).get("Arn", "")
        execution = self.executions.known.get(machine.tags.get(tags.EXECUTION, ""))
        if deployment != OURS and (deployment is not None or profile != PROFILE):
            return "it is none of ours (I2)"
        if tags.PROTECTED in machine.tags:
            return "it is protected"
        if self.late(machine):
            return ""
        if age < GRACE_S:
            return "it is young"
        if deployment is None:
            return "" if age >= LONGEST_S + SECOND_LOOK_S else "it is untagged, and may be a job's (I2)"
        if execution is None:
            return self._gone(machine, age)
        if execution.status == "RUNNING":
            return self._unknown(machine, age) and "its execution runs and its deadline is ahead (I3)"
        assert execution.ended_at is not None
        over = self.now - execution.ended_at
        return "" if over >= GRACE_S + SECOND_LOOK_S else self._unknown(machine, age) and f"over since {over} s"

    def _gone(self, machine: Machine, age: float) -> str:
        named = machine.tags.get(tags.EXECUTION, "")
        if named in self.gone_at:
            return "" if self.now - self.gone_at[named] >= SECOND_LOOK_S else self._unknown(machine, age)
        return self._unknown(machine, age)

    def _unknown(self, machine: Machine, age: float) -> str:
        """Nothing is known but how long a job may last."""
        unreadable = readable(machine.tags.get(tags.DEADLINE, ""), machine.launched_at) is None
        return "" if unreadable and age >= LONGEST_S + SECOND_LOOK_S else "its execution is not known"

    # What must be gone

    def overdue(self) -> list[str]:
        """I1, with the reaper alone: what runs ten minutes after its deadline though nothing was in the reaper's way."""
        found = []
        for machine in self.machines():
            if machine.ending_at != NEVER or machine.stuck or machine.protected or not self.late(machine):
                continue
            deadline = readable(machine.tags[tags.DEADLINE], machine.launched_at)
            assert deadline is not None
            since = max(deadline, machine.launched_at, self.changed_at.get(machine.id, 0.0), self.well_since)
            if self.now > since + 600 and tags.PROTECTED not in machine.tags:
                found.append(f"{machine.id} runs {self.now - deadline:.0f} s after its deadline")
        return found

    def orphans(self, since: float) -> list[str]:
        """What runs though its execution has been over, or forgotten, since then."""
        found = []
        for machine in self.machines():
            named = machine.tags.get(tags.EXECUTION, "")
            execution: Execution | None = self.executions.known.get(named)
            ended = execution.ended_at if execution else self.gone_at.get(named)
            ours = machine.tags.get(tags.DEPLOYMENT) == OURS and tags.PROTECTED not in machine.tags
            if ours and machine.ending_at == NEVER and ended is not None and ended <= since:
                found.append(f"{machine.id} runs, and its execution is over")
        return found
