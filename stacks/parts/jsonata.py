r"""The machines' longer JSONata expressions.

A failing expression ends the execution without any Catch, so none of these may fail, whatever an error looks like.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from contract import errors
from contract import patience as patience_words

# Lambda's Cause is {"errorMessage": "...", ...}, cut off at 32 KiB: a pattern still finds the message where $parse would fail.
# The pattern has no alternation inside its loop, which would recurse once a character, and no `\\]`, which JSONata misreads.
_OUTPUT = r"""
  $error := $exists($states.errorOutput.Error) ? $string($states.errorOutput.Error) : 'States.Unknown';
  $text := $exists($states.errorOutput.Cause) ? $string($states.errorOutput.Cause) : '';
  $found := $match($text, /"errorMessage"\s*:\s*"([^"\x5c]*(?:\x5c.[^"\x5c]*)*)"/, 1);
  $told := $count($found) = 0 ? $text
    : $replace($replace($replace($found[0].groups[0], '\\n', '\n'), '\\"', '"'), '\\\\', '\\');
  $cause := $told != '' ? $told : 'No reason was given; the events before in the history of the execution say more.';
"""
_LATE = r"$late := $error in ['States.Timeout', 'States.HeartbeatTimeout'] and $millis() >= $deadline * 1000;"
LATE_CAUSE = "The hours of the job were over before anybody could tell how its nodes had ended."


def patience(seconds: float) -> dict[str, Any]:
    """Tells a step's function its patience. EnteredTime is when the state was entered, and retries do not change it."""
    told = {patience_words.ENTERED_AT: "{% $states.context.State.EnteredTime %}", patience_words.SECONDS: seconds}
    return {patience_words.FIELD: told}


BEGUN = {
    "request": "{% $states.input %}",
    "execution": {
        "arn": "{% $states.context.Execution.Id %}",
        "name": "{% $states.context.Execution.Name %}",
        "started_at": "{% $states.context.Execution.StartTime %}",
    },
}
"""Input of a machine's first function: the execution's input, and which execution it is."""
SHORT = 2000
"""Characters that are kept of each of several causes: together they must fit into a state's output."""


def _expression(text: str) -> str:
    return "{% (" + " ".join(line.strip() for line in text.strip().splitlines()) + ") %}"


REFUSED = _expression(_OUTPUT + "{'error': $error, 'cause': $cause}")
"""Admit's error output as {error, cause} with a cause for a person; at this point the machine has no variables."""

PROBLEM = _expression(
    f"""{_OUTPUT} {_LATE}
    {{'error': $late ? '{errors.DeadlineReached.__name__}' : $error, 'cause': $late ? '{LATE_CAUSE}' : $cause}}"""
)
"""The same for a working step. A step that times out after the deadline fails because the job's hours are over."""


WAITED_CAUSE = (
    "The job waited for capacity as long as it may, and nobody answered in the end; waiting.json has the last answers."
)
WAITED = _expression(
    f"""{_OUTPUT} $late := $error = 'States.Timeout';
    {{'error': $late ? '{errors.CapacityUnavailable.__name__}' : $error, 'cause': $late ? '{WAITED_CAUSE}' : $cause}}"""
)
"""The same for a state that waits for capacity: the time that it has is that of the wait, and not the job's hours."""
WAIT_BEGINS = "{% $floor($millis() / 1000) + $wait_left_s %}"
"""Until when an attempt that begins to wait now may wait, UTC epoch seconds; the launcher knows it better, and ends it sooner."""


def wait_left(after_s: float, *, least: int) -> str:
    """Returns the whole seconds until `after_s` after the end of the wait, never fewer than `least`."""
    return f"{{% $max([$waits_until + {math.ceil(after_s)} - $floor($millis() / 1000), {least}]) %}}"


def _left(warning: str) -> str:
    """Keeps the earlier error as the error, and adds `warning` and the newer error to its cause."""
    return _expression(
        f"""{_OUTPUT}
        {{
          'error': $exists($problem.error) ? $problem.error : $error,
          'cause': ($exists($problem.error) ? $problem.cause & ' ' : '') &
            '{warning} ' & $cause
        }}"""
    )


LEFT_RUNNING = _left("Instances may still run until their own timers end them, five minutes after the deadline:")
"""The same for Terminate: the earlier error stays the error."""

LEFT_TRAINING = _left("Trainings may still run until the reaper ends them, or their own time-outs do:")
"""The same for a grid's Stop."""

SUBMITTED_BADLY = _expression(
    f"""{_OUTPUT}
    {{'first': $states.input.first, 'problem': $error & ': ' & $substring($cause, 0, {SHORT})}}"""
)
"""Result of an array that Batch did not accept, or that did not end well; the records of its lines say more, and decide."""

CAUSE = 30_000
"""The most characters of a cause: Step Functions takes 32,768 in all."""
TOLD = _expression(
    rf"""
    $cause := $length($problem.cause) > {CAUSE} ? $substring($problem.cause, 0, {CAUSE}) & ' ...' : $problem.cause;
    $exists($links.execution)
      ? $cause & '\n\nExecution: ' & $links.execution & '\nLog: ' & $links.log
        & '\nArtifacts: ' & $links.artifacts & '\nReport: ' & $links.report
      : $cause
    """
)
"""Cause of a failed execution: the cause first, then where to look. A refused request has no links."""

NO_PROBLEM = "{% $not($exists($problem.error)) %}"


def again(mendable: Sequence[type[errors.JobError]]) -> str:
    """Whether a new attempt can mend the problem, and is allowed."""
    listed = ", ".join(f"'{error.__name__}'" for error in mendable)
    return f"{{% $problem.error in [{listed}] and $attempt <= $recoveries and $millis() < $deadline * 1000 %}}"


def before_deadline(after_s: float) -> str:
    """Whether it is earlier than `after_s` after the job's deadline."""
    return f"{{% $millis() < ($deadline + {math.ceil(after_s)}) * 1000 %}}"


def seconds_left(after_deadline_s: float, *, least: int) -> str:
    """Returns the whole seconds until `after_deadline_s` after the job's deadline, never fewer than `least`."""
    return f"{{% $max([$deadline + {math.ceil(after_deadline_s)} - $floor($millis() / 1000), {least}]) %}}"
