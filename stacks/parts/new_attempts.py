"""The rules of Decide about new attempts: which problems lead through a pause to another launch, and what is counted.

docs/decisions/checkpoints.md says why.
"""

from __future__ import annotations

from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from contract import errors
from contract.timing import Timing
from stacks.parts import jsonata


def pause_before(scope: Construct) -> sfn.Wait:
    """The state before every new launch."""
    return sfn.Wait.jsonata(
        scope,
        "Pause",
        comment="Waits only after attempts that died young, one after the other: each time twice as long.",
        time=sfn.WaitTime.seconds("{% $pause %}"),
    )


def begin_again(decide: sfn.Choice, *, pause: sfn.Wait, end: sfn.Fail, timing: Timing) -> None:
    """Adds the rules; whatever no rule takes leads to `end`. A loss takes a recovery and no retry, an exit code a retry and no recovery,
    an interruption by AWS neither."""
    pause_s = jsonata.pause(timing.recovery_pause_s, timing.recovery_longest_s)
    for condition, comment, counted in (
        (jsonata.again(errors.NEW_ATTEMPT), "A new attempt, from the newest checkpoint", {"lost": jsonata.LOST}),
        (jsonata.RETRIED, "The request retries this exit code", {"retries": "{% $retries - 1 %}"}),
    ):
        decide.when(
            sfn.Condition.jsonata(condition),
            pause,
            comment=comment,
            assign={"attempt": "{% $attempt + 1 %}", "problem": "{% null %}", "pause": pause_s, **counted},
        )
    decide.when(
        sfn.Condition.jsonata(jsonata.spent(errors.NEW_ATTEMPT)),
        end,
        comment="No new attempt is left",
        assign={"problem": jsonata.UNMENDED},
    )
    decide.otherwise(end)
