"""What several executions at once ask of AWS, watched where it has its effect, whatever the functions say of it."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Collection
from typing import Any

from contract import items, keys, tags
from contract.codec import decode
from contract.sessions import TAG, SessionCredentials
from localaws.model import Refused
from tests.builders import NODE_ROLE
from tests.fakes.aws import Aws
from tests.fakes.state import place
from tests.fakes.wire import Call
from tests.properties.jobs_oracle import Run
from tests.properties.world import Node

INSTANCE = re.compile(r"i-[0-9a-f]{17}")
WRITES = frozenset({"PutObject", "CopyObject", "DeleteObject", "PutItem", "DeleteItem"})
MAY_WRITE = {
    "admission": r"jobs/{job}/(job\.json|code/.*)|agents/.*|job#{job}/job",
    "launcher": r"launch#{job}/\d+#\d+|regions/.*|groups/.*|capacity/{job}#.*|turn/launcher|empty/.*|jobs/{job}/waiting\.json",
    "attendant": (
        rf"order#[^/]+/\d+(#told)?|session#[^/]+/\d+|{NODE_ROLE}:i-[0-9a-f]+/(order|keys)|waiting/.*|pass/(attendant|await#.*)"
        "|unhealthy#[^/]+/.*|curve#[^/]+/curve"
    ),
    "artifact_check": r"jobs/{job}/attempts/\d+/artifacts\.json",
    "terminator": r"jobs/{job}/report\.json|closed#{job}/\d+(#ended)?",
    "cleanup": r"jobs/[^/]+/report\.json|closed#[^/]+/\d+(#ended)?",
}
"""Keys of objects, and of items as `partition/sort`, that a function of an execution may write."""
PAUSED = 0.05
"""The share of calls before which time passes, up to LONGEST_PAUSE_S."""
LONGEST_PAUSE_S = 8.0


class Task(threading.local):
    """What runs in this thread."""

    function: str = ""
    run: Run | None = None


class Watched(Aws):
    """Shows every call with an effect to the watch, at the moment of the effect."""

    watch: Watch
    chance: random.Random
    paused: float = PAUSED

    def answer(self, call: Call) -> dict[str, Any]:
        if self.chance.random() < self.paused:  # so that others come between it and the call before
            self.clock.spend(self.chance.uniform(0.0, LONGEST_PAUSE_S))
        return super().answer(call)

    def _serve(self, call: Call) -> dict[str, Any]:
        self.watch.before(call)
        try:
            result = super()._serve(call)
        except Refused as refusal:
            self.watch.refusal(call, refusal.code)
            raise
        self.watch.after(call, result)
        return result


class Watch:
    """Collects `surprises`: what a function did that belongs to another execution, or came at a wrong time."""

    def __init__(self, aws: Aws) -> None:
        self.aws = aws
        self.task = Task()
        self.surprises: list[str] = []
        self.runs: list[Run] = []
        """Every execution, in the order of their begins."""
        self.owners: dict[str, Run] = {}
        """Instance to whose launcher launched it."""

    def check_names(self, who: str, run: Run, text: str) -> None:
        if foreign := sorted({one for one in INSTANCE.findall(text) if self.owners.get(one) is not run}):
            self.surprises.append(f"{who} speaks of {foreign}, which are not its own")

    def before(self, call: Call) -> None:
        function, run = self.task.function, self._run_of(call)
        if not function:
            return
        if call.operation in WRITES:
            name = re.escape(run.id) if run else "[^/#]+" if function == "launcher" else ""
            allowed = MAY_WRITE[function].replace("{job}", name)
            key = place(call)
            if not re.fullmatch(allowed, key) or (run and run.refused and not key.startswith(keys.AGENTS)):
                self.surprises.append(f"{function} of {run.id if run else 'nobody'} writes {key}")
            if key.endswith(f"/{items.KEYS}"):
                self._check_keys(call)
        elif call.name == "ec2:TerminateInstances":
            self._check_ending(function, run, call.params["InstanceIds"])
        elif call.name == "ec2:CreateTags" and run is not None:
            self.check_names(f"{function} of {run.id}", run, " ".join(call.params["Resources"]))
        elif call.name == "ec2:RunInstances" and (run is None or run.refused):
            self.surprises.append(f"{function} launches for nobody")

    def _run_of(self, call: Call) -> Run | None:
        """The execution that the function works for; a launcher that the clock woke launches for the job that its request names."""
        if self.task.run is None and self.task.function == "launcher" and call.name == "ec2:RunInstances":
            name = _marks(call)[tags.JOB]
            return next(run for run in reversed(self.runs) if run.id == name and not run.refused)
        return self.task.run

    def _check_keys(self, call: Call) -> None:
        """A node's keys are of a session that IAM lets touch the node's own job."""
        (instance,) = INSTANCE.findall(place(call))
        given = decode(SessionCredentials, items.unpacked(call.params["Item"]))
        session = self.aws.sts.session(given.access_key)
        if session["Tags"] != [{"Key": TAG, "Value": self.owners[instance].id}]:
            self.surprises.append(f"{instance} of {self.owners[instance].id} gets keys for {session['Tags']}")

    def _check_ending(self, function: str, run: Run | None, ids: Collection[str]) -> None:
        for one in ids:
            owner = self.owners.get(one)
            if owner is None or (run is not None and owner is not run):
                self.surprises.append(f"{function} of {run.id if run else 'nobody'} ends {one}, which is not its own")
                continue
            node = next(node for fate in owner.fates.values() if (node := fate.nodes.get(one)))
            if not owner.execution.over and node.attempt > owner.endable:
                self.surprises.append(f"{function} ends {one} of {owner.id} while its attempt {node.attempt} goes on")

    def after(self, call: Call, result: dict[str, Any]) -> None:
        run = self._run_of(call)
        if call.name == "ec2:RunInstances" and run is not None:
            for told in result["Instances"]:
                machine = self.aws.ec2[call.region].machines[told["InstanceId"]]
                self.owners.setdefault(machine.id, run)
                node = Node(machine)
                run.fate(_attempt(call)).nodes.setdefault(machine.id, node)
        elif call.name == "s3:PutObject" and (key := call.params["Key"]).endswith("/job.json"):
            versions = self.aws.s3.buckets[call.params["Bucket"]].objects[key]
            if len(versions) > 1:
                self.surprises.append(f"{key} is written twice")

    def refusal(self, call: Call, code: str) -> None:
        run = self._run_of(call)
        if call.name == "ec2:RunInstances" and run is not None:
            run.fate(_attempt(call)).refusals.append((self.aws.clock.now, code))


def _attempt(call: Call) -> int:
    return int(_marks(call)[tags.ATTEMPT])


def _marks(call: Call) -> dict[str, str]:
    """The tags of a launch."""
    return {tag["Key"]: tag["Value"] for tag in call.params["TagSpecifications"][0]["Tags"]}
