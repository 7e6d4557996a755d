"""Several executions of one deployment at once, every function a process of its own: between any two calls of one, anything of the
others may happen, and time passes before a call as chance will have it.

What is asked of AWS is watched where it has its effect, whatever the functions say of it. A function of one execution ends, tags and
names no instance of another, and writes under no other job's keys; `job.json` is written once. A node gets keys of its own job alone.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest import mock

import attendant.passes
from contract import items, keys, tags
from contract.codec import decode
from contract.jobs import Job, NoProgress, Reaction
from contract.places import Place
from contract.roles import RoleEnd
from contract.timing import Timing
from tests.archives import packed
from tests.builders import ADMISSION, JOB, NOW
from tests.fakes.events import Event
from tests.fakes.faults import Mishap
from tests.fakes.functions import CLOCK_S, Functions, Outcome
from tests.fakes.state import kept
from tests.fakes.table import Rude
from tests.fakes.threads import Process, SharedClock
from tests.fakes.yard import PLACES, admits, deployed
from tests.properties.execution import Answered, Execution
from tests.properties.jobs_nodes import JobNodes
from tests.properties.jobs_oracle import LATEST_S, ON_DEMAND, Run, allowed_ends, right_end
from tests.properties.jobs_watched import Watch, Watched
from tests.properties.world import BOOT_S, Node, rude

TIMING = replace(JOB.timing, warm_up_s=120.0)
"""A stall counts within the times that pass here."""
STATUS = {"Done": "SUCCEEDED", "Failed": "FAILED"}
UNSAID = {"ABORTED": "Aborted", "TIMED_OUT": "TimedOut", "FAILED": "Failed"}
"""What a report says of an end that came without a name."""


class JobsWorld(JobNodes):
    """A deployment, its executions, and their nodes."""

    def __init__(self, seed: int, *, timing: Timing = TIMING, places: Sequence[Place] = PLACES) -> None:
        self.chance = random.Random(seed)
        self.clock = SharedClock(NOW)
        self.aws = Watched(now=NOW, clock=self.clock)
        self.aws.chance, self.aws.watch = self.chance, Watch(self.aws)
        self.aws.prices.hourly = dict(ON_DEMAND)
        self.watch = self.aws.watch
        self.surprises, self.owners = self.watch.surprises, self.watch.owners
        self.timing = timing
        admits(deployed(fake=self.aws, places=places), places)
        self.aws.table.knobs, self.aws.table.chance = rude(), random.Random(seed)
        self.aws.table.weather = Rude(chance=random.Random(seed))
        self.runs: list[Run] = []
        self.watch.runs = self.runs
        self.boot_s = BOOT_S
        self.armed: dict[str, Mishap] = {}
        """What befalls the next invocation that no execution makes, by function."""
        self.tokens: list[tuple[Run, dict[str, object]]] = []
        """What the executions that wait for capacity have told the launcher."""
        self._processes: set[Process] = set()
        self._closed = False
        self._installed = ExitStack()
        self.functions = Functions(self.aws)
        self.functions.admission = replace(
            self.functions.admission, timing=timing
        )  # before its environment is made of it
        self._installed.enter_context(self.functions.installed())
        self._installed.enter_context(mock.patch.object(attendant.passes, "SLICE", self.chance.choice([1, 2, 100])))
        self.functions.wake(self.wake)
        self.aws.events.every(CLOCK_S, self.tick)
        self.functions.clean_up()
        self.aws.queue.feed(self._cleanup)
        self.beat()

    def close(self) -> None:
        self._closed = True
        for process in list(self._processes):
            process.kill()
        self._installed.close()

    # Executions

    def ask(self, name: str, *, nodes: int = 1, **request: Any) -> Run:
        """A person starts an execution."""
        source = f"{keys.UPLOADS}{name}.tar.gz"
        if self.aws.s3.read(JOB.home_bucket, source) is None:
            self.upload(name)
        whole = {
            "code": f"s3://{JOB.home_bucket}/{source}",
            "command": ["python", "train.py"],
            "instance_types": ["g5.xlarge"],
            **({} if "roles" in request else {"nodes": nodes}),
            **request,
        }
        ends = [RoleEnd(one.get("ends", "job")) for one in request.get("roles", ()) for _ in range(one.get("count", 1))]
        nodes = len(ends) or nodes
        execution = Execution(name, self.aws, self._invoke, self.timing, request=whole)
        taken = any(one.id == name and not one.refused for one in self.runs)
        too_much = nodes > ADMISSION.limits.max_nodes
        retries, cap = request.get("retries", {}).get("times", 0), request.get("max_cost_usd")
        stall = request.get("stall")
        run = Run(execution, self.aws.states.executions.begin(name), taken or too_much, nodes, retries, cap)
        run.ends = tuple(ends)
        run.stall = NoProgress(minutes=stall["minutes"], then=Reaction(stall["then"])) if stall else None
        execution.judged = lambda: self._judged(run)
        execution.ended = lambda: self._ended(run)
        self.runs.append(run)
        execution.start()
        return run

    def upload(self, name: str) -> None:
        """Other bytes than any before."""
        body = packed("train.py", f"of-{self.chance.random()}.py")
        self.aws.s3.write(JOB.home_bucket, f"{keys.UPLOADS}{name}.tar.gz", body)

    def stop(self, run: Run, status: str = "ABORTED") -> None:
        """Somebody stops it, or its machine's time is over (`TIMED_OUT`), or it meets an error that no state catches (`FAILED`)."""
        run.stopped, run.status = not run.execution.over, status
        run.execution.stop()

    def redrive(self, run: Run) -> bool:
        """A person has the execution go on; False where Step Functions refuses that."""
        newest = next(one for one in reversed(self.runs) if one.id == run.id)
        if run is not newest or not run.execution.over or run.execution.state == "Done":
            return False
        if run.execution.state == "Aborted":
            run.stopped = False
            run.redriven.add(run.execution.attempt)
        run.old_entry = self.chance.random() < 0.5
        self.aws.states.executions.redrive(run.known)
        run.execution.redrive(entered_anew=not run.old_entry)
        return True

    def going(self) -> list[Run]:
        return [run for run in self.runs if not run.execution.over]

    def run(self, seconds: float) -> None:
        self.clock.run(seconds)

    # Functions

    def wake(self, event: Event) -> None:
        """Something wakes the attendant."""
        self._start("attendant", event, None, lambda _: None)

    def tick(self, event: Event | None = None) -> None:
        """The launcher's clock wakes it."""
        event = event or self.aws.events.event("aws.events", "Scheduled Event", {})
        self._start("launcher", event, None, lambda _: None)

    def token_again(self, which: int) -> None:
        """What a state that waits for capacity told the launcher comes to it again, however late."""
        run, event = self.tokens[which % len(self.tokens)]
        self._start("launcher", event, run, lambda _: None)

    def _invoke(self, name: str, event: dict[str, object], answered: Answered) -> None:
        at = event.get("job") or event["execution"]["name"]  # type: ignore[index]
        run = next(run for run in reversed(self.runs) if run.id == at)
        if name == "launcher" and "token" in event:
            self.tokens.append((run, event))
        self._start(name, event, run, answered)

    def _start(self, name: str, event: Event, run: Run | None, answered: Answered) -> None:
        mishap = (run.armed if run else self.armed).pop(name, None)

        def body() -> Outcome:
            self.watch.task.function, self.watch.task.run = name, run
            return self.functions.invoke(name, event, [mishap] if mishap else [])

        def ended(process: Process) -> None:
            self._processes.discard(process)
            if self._closed:
                return
            if process.problem is not None:
                self.surprises.append(f"{name}: {process.problem!r}")
                return
            self._check_answer(name, run, process.result)
            answered(process.result)

        process = Process(self.clock, body, ended)
        self._processes.add(process)
        process.start()

    def _cleanup(self, event: dict[str, Any]) -> Any:
        """Within whatever delivers its message, while time passes for all the others."""
        before, self.watch.task.function = self.watch.task.function, "cleanup"
        mishap = self.armed.pop("cleanup", None)
        outcome = self.functions.invoke("cleanup", event, [mishap] if mishap else [])
        self.watch.task.function = before
        return outcome.value

    def _check_answer(self, name: str, run: Run | None, outcome: Outcome) -> None:
        """What it counts, waits for or names is the execution's own."""
        if run is not None:
            self.watch.check_names(f"{name} of {run.id}", run, f"{outcome.value} {outcome.cause}")

    # What must hold

    def _judged(self, run: Run) -> None:
        said, allowed = run.execution.problem, allowed_ends(run, self.clock.now, self._stop_at(run))
        if (said[0] if said else "") not in allowed:
            self.surprises.append(f"{run.id}: {said or 'success'}, and the oracle says {sorted(allowed)}")

    def _ended(self, run: Run) -> None:
        execution, said = run.execution, run.execution.problem
        if not right_end(run, self.clock.now):
            self.surprises.append(f"{run.id} is {execution.state} for {said} after {execution.verdicts}")
        error, cause = said if said and execution.state == "Failed" else (None, None)
        status = run.status if execution.state == "Aborted" else STATUS[execution.state]
        self.aws.states.executions.end(run.known, status, error, cause)

    def _stop_at(self, run: Run) -> float:
        job = self.job(run)
        return job.stop_at + run.execution.deadline - job.deadline

    def job(self, run: Run) -> Job:
        """As Admit wrote it."""
        body = self.aws.s3.read(JOB.home_bucket, keys.JobPrefix(run.id).description)
        assert body is not None
        return decode(Job, body)

    def too_many(self) -> list[str]:
        """Whole clusters of one attempt at a time, and never more than was asked for, or may be spent."""
        found = []
        for run in self.runs:
            running = [machine for machine in run.machines() if machine.runs(self.clock.now)]
            launches = {(machine.tags[tags.ATTEMPT], machine.reservation) for machine in running}
            attempts, ranks = {attempt for attempt, _ in launches}, {node.rank for node in self.list_running(run)}
            several = len(attempts) > 1 or (len(launches) > 1 and not run.ends) or len(ranks) < len(running)
            if several or len(running) > run.nodes:
                found.append(f"{run.id}: {len(running)} instances run, of {sorted(launches)}")
            if any(machine.tags[tags.JOB] != run.id for machine in running):
                found.append(f"{run.id}: an instance has another job's tag")
            if late := [one.id for one in running if self.clock.now > int(one.tags[tags.DEADLINE]) + LATEST_S]:
                found.append(f"{run.id}: {late} run ten minutes after their deadline")
            if run.overspent(self.clock.now):
                found.append(f"{run.id} has cost ${run.billed(self.clock.now):.2f} of ${run.cap_usd}")
            if left := [one.id for one in running if int(one.tags[tags.ATTEMPT]) in run.execution.terminated]:
                found.append(f"{run.id}: Terminate succeeded, and {left} run")
        return found

    def list_running(self, run: Run) -> list[Node]:
        every = (node for fate in run.fates.values() for node in fate.nodes.values())
        return [node for node in every if node.machine.runs(self.clock.now)]

    def together(self) -> list[str]:
        """Jobs whose nodes can reach each other: a region has a security group for each of them."""
        having = dict[str, set[str]]()
        for machine in (one for ec2 in self.aws.ec2.values() for one in ec2.machines.values()):
            if machine.state(self.clock.now) != "terminated":
                for group in machine.request["NetworkInterfaces"][0]["Groups"]:
                    having.setdefault(group, set()).add(machine.tags[tags.JOB])
        return [f"{', '.join(sorted(jobs))} share {group}" for group, jobs in having.items() if len(jobs) > 1]

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        for ec2 in self.aws.ec2.values():
            ec2.capacity.clear()
            ec2.spot_capacity.clear()
            ec2.vcpu_quota = None

    def left_over(self) -> list[str]:
        """Once all is over: instances, tokens, and what the documents say that is not so."""
        found = [f"{one.id} runs" for ec2 in self.aws.ec2.values() for one in ec2.running()]
        found += [
            f"{one[items.SORT]['S']} waits"
            for one in kept(self.aws)
            if one[items.PARTITION]["S"] in {items.WAITING, items.CAPACITY}
        ]
        return found + [line for run in self.runs if not run.refused for line in self._documents(run)]

    def _documents(self, run: Run) -> list[str]:
        """The report says how it ended, the list of artifacts has what last reports named, the code is that of the admission."""
        execution, prefix, found = run.execution, keys.JobPrefix(run.id), list[str]()
        described = self.aws.s3.read(JOB.home_bucket, prefix.description)
        tried = any(fate.nodes or fate.refusals for fate in run.fates.values())
        if described is None or not (execution.launched or tried or execution.verdicts):
            return found  # stopped before its launch
        job = decode(Job, described)
        sources = self.aws.s3.buckets[JOB.home_bucket].objects[f"{keys.UPLOADS}{run.id}.tar.gz"]
        assert job.code is not None
        pinned = next(one.body for one in sources if one.id == job.code.source_version)
        if self.aws.s3.read(JOB.home_bucket, job.code.key) != pinned:
            found.append(f"{run.id} runs other code than was there when it was admitted")
        report = json.loads(self.aws.s3.read(JOB.home_bucket, prefix.result) or b"{}")
        said = {"Done": None, "Aborted": UNSAID[run.status]}.get(
            execution.state, execution.problem and execution.problem[0]
        )
        if report.get("error", "no report") != said:
            found.append(f"the report of {run.id} says {report.get('error', 'nothing')}, and it ended with {said}")
        self.watch.check_names(f"the report of {run.id}", run, json.dumps(report))
        if execution.state == "Done":
            listed = json.loads(self.aws.s3.read(JOB.home_bucket, prefix.artifacts(execution.attempt)) or b"{}")
            files = [(one["rank"], one["path"], one["size"], one["at"]) for one in listed.get("artifacts", [])]
            committed = sorted(run.fate(execution.attempt).files.values())
            if sorted(files) != committed:
                found.append(f"{run.id} lists {files}, and its nodes committed {committed}")
        return found
