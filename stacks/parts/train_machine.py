"""The Train machine: Admit, Launch, Train, Sync, Terminate, Decide. Every way out after Admit leads through Terminate.

A job that may wait for capacity goes from Launch to "Wait for capacity", and from there to Train, as if it had been launched at once. A new
attempt goes from Decide through a pause to Launch (docs/decisions/checkpoints.md).

Two ends run no Catch: an execution that a person aborts, and the machine's own time-out. For these there are the cleanup queue
and the reaper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from contract import errors
from contract.timing import Timing
from stacks.parts import jsonata
from stacks.parts.machine import (
    SERVICE_ERRORS,
    ask_again,
    failed,
    invocation,
    machine_role,
    outlive,
    outlived_s,
    standard_machine,
    try_s,
    whole,
)
from stacks.parts.new_attempts import begin_again, pause_before
from stacks.parts.right import Right

CALLS = 5
"""How often the attendant is called during the time of one heartbeat when calls fail."""
FAILED_CALLS = 100
"""How often in a row. At 300 s a heartbeat, Lambda may be away for well over an hour."""
VERDICTS = sorted(errors.BY_NAME)
"""The attendant's answers about an attempt. Any other error of Train is the attendant's own, and says nothing about the nodes."""

AWAITED = errors.CapacityAwaited.__name__
WAIT_AGAIN_S, WAIT_CALLS = 60, 60
"""How often the launcher is called that keeps the token of a wait, when calls fail: for an hour, while nothing runs."""
PENDING = errors.CapacityPending.__name__
LOST_HEARTBEAT = "States.HeartbeatTimeout"
ANSWER = "{% $states.result.Payload %}"
"""Makes the function's answer the state's output, without what Lambda adds about the invocation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The functions behind the states."""

    admission: lambda_.Function
    launcher: lambda_.Function
    attendant: lambda_.Function
    artifact_check: lambda_.Function
    terminator: lambda_.Function

    def all(self) -> list[lambda_.Function]:
        return [self.admission, self.launcher, self.attendant, self.artifact_check, self.terminator]


class TrainMachine(Construct):
    """`machine` is the state machine; the id of a job is the name of its execution."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        physical_name: str,
        steps: Steps,
        max_hours: float,
        max_wait_hours: float,
        timing: Timing,
    ):
        super().__init__(scope, name)
        self._timing = timing

        admit = self._admit(steps.admission)
        launch = self._launch(steps.launcher)
        wait = self._wait(steps.launcher)
        train = self._train(steps.attendant)
        sync = self._sync(steps.artifact_check)
        terminate = self._terminate(steps.terminator)
        lost, decide, pause, done = self._lost_heartbeat(), self._decide(), pause_before(self), self._done()
        end = failed(self, "The first error of the attempt that could not be mended, and its reason.", jsonata.TOLD)

        train.add_catch(lost, errors=[LOST_HEARTBEAT], assign={"problem": jsonata.PROBLEM, "events": jsonata.SPENT})
        launch.add_catch(wait, errors=[AWAITED], assign={"waits_until": jsonata.WAIT_BEGINS, "events": jsonata.SPENT})
        wait.add_catch(wait, errors=[LOST_HEARTBEAT], assign={"events": jsonata.SPENT})
        wait.add_catch(terminate, errors=["States.ALL"], assign={"problem": jsonata.WAITED})
        for step in (launch, train, sync):
            step.add_catch(
                terminate, errors=["States.ALL"], assign={"problem": jsonata.PROBLEM, "events": jsonata.SPENT}
            )
        admit.add_catch(end, errors=["States.ALL"], assign={"problem": jsonata.REFUSED, "links": "{% null %}"})
        terminate.add_catch(end, errors=["States.ALL"], assign={"problem": jsonata.LEFT_RUNNING})

        plan_only = self._plan_only()
        planned = sfn.Succeed.jsonata(
            self, "Planned", comment="A dry run: the output has the ladder with its prices, and nothing was started."
        )
        plan_only.when(sfn.Condition.jsonata("{% $states.input.dry_run = true %}"), planned, comment="A dry run")
        plan_only.otherwise(launch)
        lost.when(
            sfn.Condition.jsonata(jsonata.before_deadline(timing.power_off_after_deadline_s)),
            train,
            comment="A new look at the state",
            assign={"problem": "{% null %}"},
        )
        lost.otherwise(terminate)
        wait.next(train)
        admit.next(plan_only)
        launch.next(train).next(sync).next(terminate).next(decide)
        decide.when(sfn.Condition.jsonata(jsonata.NO_PROBLEM), done, comment="Everything went well")
        begin_again(decide, pause=pause, end=end, timing=timing)
        pause.next(launch)

        functions = [function.function_arn for function in steps.all()]
        self.machine = standard_machine(
            self,
            physical_name=physical_name,
            begins_with=admit,
            comment="Trains one job: launch, train, sync, terminate. The name of the execution is the name of the job.",
            timeout=cdk.Duration.seconds(
                math.ceil((max_hours + max_wait_hours) * 3600) + self._after_the_deadline_s(steps)
            ),
            runs_as=machine_role(
                self,
                "The Train machine: invokes its functions",
                Right("InvokeStepFunctions", ["lambda:InvokeFunction"], functions),
            ),
        )

    def _after_the_deadline_s(self, steps: Steps) -> int:
        """Returns how long the machine may run after the longest job's deadline, whatever its states meet. The machine's time-out runs no
        Catch, so it must be longer than all patiences of the states: Launch may begin just before the deadline."""
        timing, heartbeat = self._timing, whole(self._timing.heartbeat_s)
        launch_s = outlived_s(
            steps.launcher,
            patience_s=timing.trouble_patience_s,
            told_s=self._launch_patience_s,
            again_s=whole(timing.launch_again_s),
        )
        wait_s = self._wait_margin_s(steps.launcher) + WAIT_CALLS * (try_s(steps.launcher) + WAIT_AGAIN_S)
        train_s = math.ceil(timing.power_off_after_deadline_s) + 2 * (heartbeat + 1)
        train_s += FAILED_CALLS * (try_s(steps.attendant) + whole(heartbeat / CALLS))
        sync_s = outlived_s(steps.artifact_check, patience_s=timing.sync_patience_s, told_s=timing.sync_patience_s)
        again, attempts = self._terminate_again
        return launch_s + wait_s + train_s + sync_s + attempts * again + (1 + attempts) * try_s(steps.terminator)

    @property
    def _launch_patience_s(self) -> float:
        """Returns the patience of Launch: for errors of AWS, and for walks that find no capacity."""
        return self._timing.launch_patience_s + self._timing.trouble_patience_s

    @property
    def _terminate_again(self) -> tuple[int, int]:
        """Seconds between two tries, and the number of retries."""
        again = whole(self._timing.terminate_again_s)
        return again, math.ceil(self._timing.terminate_patience_s / again)

    def _admit(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        return self._task(
            "Admit",
            function,
            "Checks the request and everything it names, pins what may change, and writes job.json. Nothing exists yet.",
            payload=jsonata.BEGUN,
            outputs=ANSWER,
            patience_s=self._timing.trouble_patience_s,
            assign={
                "job": "{% $states.result.Payload.job %}",
                "links": "{% $states.result.Payload.links %}",
                "deadline": "{% $states.result.Payload.deadline %}",
                "recoveries": "{% $states.result.Payload.recoveries %}",
                "retries": "{% $states.result.Payload.retries %}",
                "wait_left_s": "{% $states.result.Payload.wait_left_s %}",
                "attempt": 1,
                "late_error": errors.DeadlineReached.__name__,
                "cost": "{% null %}",
                "rungs": [],
                "problem": "{% null %}",
                **jsonata.COUNTS,
                "step": "{% $states.result.Payload.step %}",
            },
        )

    def _launch(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        again = whole(self._timing.launch_again_s)
        launch = self._task(
            "Launch",
            function,
            "Starts all nodes of the attempt or none: walks down the ladder of zones and types, again and again until the "
            "launch patience is over.",
            payload={"job": "{% $job %}", "attempt": "{% $attempt %}", **jsonata.patience(self._launch_patience_s)},
            outputs=ANSWER,
            assign=_launched("$states.result.Payload"),
        )
        # The launcher itself ends the patience; the five extra retries are for walks that end early.
        attempts = math.ceil(self._timing.launch_patience_s / again) + 5
        ask_again(launch, PENDING, interval_s=again, attempts=attempts)
        outlive(
            launch,
            function,
            verdicts=[name for name in VERDICTS if name != PENDING],
            patience_s=self._timing.trouble_patience_s,
        )
        return launch

    def _wait(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        wait = self._task(
            "Wait for capacity",
            function,
            "Waits, for days if it must, until a rung of the ladder has capacity. The launcher tries for all jobs that wait, in turn; "
            "waiting.json (in the links) has the answers and the next try.",
            payload={
                "job": "{% $job %}",
                "attempt": "{% $attempt %}",
                "token": "{% $states.context.Task.Token %}",
                "look_here": "{% $links.waiting %}",
            },
            assign=_launched("$states.result"),
            integration_pattern=sfn.IntegrationPattern.WAIT_FOR_TASK_TOKEN,
            heartbeat_timeout=sfn.Timeout.duration(cdk.Duration.seconds(whole(self._timing.wait_heartbeat_s))),
            task_timeout=_computed(jsonata.wait_left(self._wait_margin_s(function), least=try_s(function))),
        )
        wait.add_retry(errors=VERDICTS, max_attempts=0)
        wait.add_retry(errors=[LOST_HEARTBEAT], max_attempts=0)
        wait.add_retry(
            errors=[*SERVICE_ERRORS, "States.TaskFailed"],
            interval=cdk.Duration.seconds(WAIT_AGAIN_S),
            max_attempts=WAIT_CALLS,
            backoff_rate=1,
        )
        return wait

    @staticmethod
    def _wait_margin_s(function: lambda_.Function) -> int:
        """How much later than the wait its state may end: the launcher's verdict comes with a turn of the clock, behind one that runs."""
        return 2 * try_s(function) + 2 * WAIT_AGAIN_S

    def _train(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        heartbeat = whole(self._timing.heartbeat_s)
        train = self._task(
            "Train",
            function,
            "Waits while the nodes train. The attendant looks at them every minute and answers this step's token; a missing "
            "heartbeat means that the attendant is dead, and leads to a new look.",
            payload={
                "action": "token",
                "job": "{% $job %}",
                "attempt": "{% $attempt %}",
                "token": "{% $states.context.Task.Token %}",
            },
            assign={
                "progress": "{% $exists($states.result.progress) ? $states.result.progress : null %}",
                "events": jsonata.SPENT,
            },
            integration_pattern=sfn.IntegrationPattern.WAIT_FOR_TASK_TOKEN,
            heartbeat_timeout=sfn.Timeout.duration(cdk.Duration.seconds(heartbeat)),
            task_timeout=_computed(jsonata.seconds_left(self._timing.power_off_after_deadline_s, least=heartbeat + 1)),
        )
        train.add_retry(errors=VERDICTS, max_attempts=0)
        train.add_retry(errors=[LOST_HEARTBEAT], max_attempts=0)
        # Training nodes are not given up because the attendant is away for a while.
        train.add_retry(
            errors=[*SERVICE_ERRORS, "States.TaskFailed"],
            interval=cdk.Duration.seconds(whole(heartbeat / CALLS)),
            max_attempts=FAILED_CALLS,
            backoff_rate=1,
        )
        return train

    def _sync(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        return self._task(
            "Sync",
            function,
            "Checks that everything the nodes committed is in S3, whole, and writes the list of artifacts.",
            payload={"job": "{% $job %}", "attempt": "{% $attempt %}"},
            outputs=ANSWER,
            patience_s=self._timing.sync_patience_s,
            assign={"artifacts": "{% $states.result.Payload %}"},
        )

    def _terminate(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        again, attempts = self._terminate_again
        terminate = self._task(
            "Terminate",
            function,
            "Ends every instance of the job, by tag and by remembered ids, and asks until all have begun to shut down.",
            payload={
                "job": "{% $job %}",
                "attempt": "{% $attempt %}",
                "problem": "{% $problem %}",
                "step": "{% $step %}",
            },
            outputs=ANSWER,
            assign={
                **jsonata.FURTHER,
                "cost": "{% $states.result.Payload.cost %}",
                "young": jsonata.young(self._timing.recovery_longest_s),
                "events": jsonata.SPENT,
            },
        )
        # Retries ending instances after any error: StillRunning, a killed function, a throttle of Lambda.
        ask_again(terminate, "States.ALL", interval_s=again, attempts=attempts)
        return terminate

    def _decide(self) -> sfn.Choice:
        return sfn.Choice.jsonata(
            self,
            "Decide",
            comment="Ends the job, or begins a new attempt while recoveries and time are left.",
        )

    def _plan_only(self) -> sfn.Choice:
        return sfn.Choice.jsonata(
            self, "Plan only?", comment="A request with dry_run ends here, with its plan; every other one is launched."
        )

    def _lost_heartbeat(self) -> sfn.Choice:
        return sfn.Choice.jsonata(
            self,
            "Lost heartbeat",
            comment="The attendant sent no heartbeat, which says nothing about the nodes: looks again as long as they may run.",
        )

    def _done(self) -> sfn.Succeed:
        return sfn.Succeed.jsonata(
            self,
            "Done",
            comment="The artifacts are in S3; the output says where.",
            outputs={
                "job": "{% $job %}",
                "attempts": "{% $attempt %}",
                "region": "{% $region %}",
                "instances": "{% $instances %}",
                "rungs": "{% $rungs %}",
                "progress": "{% $progress %}",
                "cost": "{% $cost %}",
                "artifacts": "{% $artifacts %}",
                "links": "{% $links %}",
            },
        )

    def _task(
        self,
        name: str,
        function: lambda_.Function,
        comment: str,
        *,
        payload: Mapping[str, Any],
        patience_s: float | None = None,
        **options: Any,
    ) -> tasks.LambdaInvoke:
        """Adds the step; with a patience, any error that is not a verdict is retried until the patience is over."""
        told = jsonata.patience(patience_s) if patience_s is not None else {}
        step = invocation(self, name, function, comment, payload={**payload, **told}, **options)
        if patience_s is not None:
            outlive(step, function, verdicts=VERDICTS, patience_s=patience_s)
        return step


def _launched(result: str) -> dict[str, str]:
    """What the machine remembers of a launch, at `result` of the state. The deadline is later by what the job has waited, and never
    later than its money lasts; the artifacts are where the attempt runs."""
    return {
        "region": f"{{% {result}.region %}}",
        "instances": f"{{% {result}.instances %}}",
        "deadline": f"{{% {result}.deadline %}}",
        "late_error": f"{{% {result}.late_error %}}",
        "wait_left_s": f"{{% {result}.wait_left_s %}}",
        "rungs": jsonata.with_rungs(result),
        "links": jsonata.with_artifacts(result),
        "launched_at": "{% $floor($millis() / 1000) %}",
        "events": jsonata.SPENT,
    }


def _computed(expression: str) -> sfn.Timeout:
    """Sets TimeoutSeconds to an expression; `Timeout.at` would render a path of the other query language, JSONPath."""
    return sfn.Timeout.duration(cdk.Duration.seconds(cdk.Token.as_number(expression)))
