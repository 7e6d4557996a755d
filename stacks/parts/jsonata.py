r"""The machines' longer JSONata expressions.

A failing expression ends the execution without any Catch, so none of these may fail, whatever an error looks like.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from contract import errors, links
from contract import patience as patience_words
from contract.jobs import Reaction

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
LATE_CAUSE = "The time of the job was over, by its hours or its money, before Trainyard knew how its nodes had ended."


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
    f"""{_OUTPUT} {_LATE} $retried := $error = '{errors.RetriedExit.__name__}';
    {{
      'error': $late ? $late_error : $retried ? '{errors.TrainingFailed.__name__}' : $error,
      'cause': $late ? '{LATE_CAUSE}' : $cause,
      'retried': $retried
    }}"""
)
"""The same for a working step. A step that times out after the deadline fails because the job's hours are over, or its money. `retried`: it
is the code's own error, and its request wants another attempt."""


WAITED_CAUSE = (
    "The job waited for capacity as long as it may, and the launcher did not answer; waiting.json has the last answers."
)
WAITED = _expression(
    f"""{_OUTPUT} $late := $error = 'States.Timeout';
    {{'error': $late ? '{errors.CapacityUnavailable.__name__}' : $error, 'cause': $late ? '{WAITED_CAUSE}' : $cause}}"""
)
"""The same for a state that waits for capacity: the time that it has is that of the wait, and not the job's hours."""
WAIT_BEGINS = "{% $floor($millis() / 1000) + $wait_left_s %}"
"""Until when an attempt that begins to wait now may wait, UTC epoch seconds; the launcher knows it better, and ends it sooner."""


RUNGS_SHOWN = 480
"""Of all attempts together, the last ones: Step Functions keeps 256 KiB in a variable, and a job may have 101 attempts of 240 rungs."""


def with_rungs(result: str) -> str:
    """Returns the rungs so far and those of a launch, at `result` of the state."""
    return f"{{% [$append($rungs, {result}.rungs)[[-{RUNGS_SHOWN}..-1]]] %}}"


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

NOT_REPORTED = _left("The report could not be written:")
"""The same for a search's Report."""

LEFT_TRAINING = _left("Trainings may still run until the reaper ends them, or their own time-outs do:")
"""The same for a grid's Stop."""

SUBMITTED_BADLY = _expression(
    f"""{_OUTPUT}
    {{'first': $states.input.first, 'problem': $error & ': ' & $substring($cause, 0, {SHORT})}}"""
)
"""Result of an array that Batch did not accept, or that did not end well; the records of its lines say more, and decide."""

_PLACES = " & ".join(f"'\\n{one.capitalize()}: ' & $links.{one}" for one in links.BELOW_CAUSE)
CAUSE = 29_000
"""The most characters of a cause: Step Functions takes 32,768 in all."""
TOLD = _expression(
    rf"""
    $cause := $length($problem.cause) > {CAUSE} ? $substring($problem.cause, 0, {CAUSE}) & ' ...' : $problem.cause;
    $by := $links.artifacts_by_region;
    $places := $exists($by) ? $keys($by)[[0..{links.SHOWN_REGIONS - 1}]] : [];
    $exists($links.execution)
      ? $cause & '\n{_PLACES[1:]}
        & $join($map($places, function($one) {{ '\n{links.ARTIFACTS_IN} ' & $one & ': ' & $lookup($by, $one) }}), '')
      : $cause
    """
)
"""Cause of a failed execution: the cause first, then where to look: artifacts in each region in which the job ran. A refused request has no
links."""


def with_artifacts(result: str) -> str:
    """Returns the links with those of the artifacts of a launch, at `result` of the state: the newest ones, and all by region."""
    by_region = f"$merge([$links.artifacts_by_region, {{{result}.region: {result}.artifacts}}])"
    further = f"{{'artifacts': {result}.artifacts, 'artifacts_by_region': {by_region}}}"
    return f"{{% $exists({result}.artifacts) ? $merge([$links, {further}]) : $links %}}"


NO_PROBLEM = "{% $not($exists($problem.error)) %}"


MOST_ATTEMPTS = 500
"""Of a job: Terminate asks for each attempt whether something of it runs, and has two minutes."""
MOST_EVENTS = 25_000
"""Of an execution's history; the next one ends it without any Catch."""
LAST_EVENTS = 5_000
"""Of these, how many are left to the last attempt, whatever its states meet: 1,000 tries, or a dead attendant for half a day."""
SPENT = _expression(
    "$again := $states.context.State.RetryCount; $events + 8 + ($exists($again) ? 4 * $again : 0)",
)
"""Events of the history, at least as many as there are. A task has two and up to four a try; that leaves two for the choice or the pause
after it."""
_ROOM = f"$attempt < {MOST_ATTEMPTS} and $events < {MOST_EVENTS - LAST_EVENTS}"
_IN_TIME = "$millis() < $deadline * 1000"
_STOPS = f"$problem.error = '{errors.Stalled.__name__}' and $states.context.Execution.Input.stall.then = '{Reaction.STOP.value}'"
"""Whether the job is stalled, and its request wants it to end there."""


def _mendable(errors_: Sequence[type[errors.JobError]]) -> str:
    listed = ", ".join(f"'{error.__name__}'" for error in errors_)
    return f"$problem.error in [{listed}]"


_TAKEN = f"$problem.error = '{errors.Interrupted.__name__}'"
_HALF = f"$problem.error = '{errors.LaunchIncomplete.__name__}'"
LOST = f"{{% {_TAKEN} or {_HALF} ? $lost : $lost + 1 %}}"
"""Recoveries once a new attempt begins. AWS's own interruptions are none: a job on spot would run out of them where its capacity comes and
goes within minutes. Pauses, the deadline, the money and the room of an execution bound them. A launch of some nodes only lost nothing, and
the launch patience bounds it."""


def again(mendable: Sequence[type[errors.JobError]]) -> str:
    """Whether a new attempt can mend the problem, and is allowed: recoveries are counted since a newer checkpoint was committed, and a job
    whose request says `stop` ends where it is stalled. One that AWS interrupts goes on, unless no recovery is allowed at all; one whose
    launch was not whole has not begun."""
    row = f"($lost < $recoveries or {_TAKEN} and $recoveries > 0 or {_HALF})"
    return f"{{% {_mendable(mendable)} and {row} and {_ROOM} and {_IN_TIME} and $not({_STOPS}) %}}"


RETRIED = f"{{% $problem.retried = true and $retries > 0 and {_ROOM} and {_IN_TIME} %}}"
"""Whether the command is run again after an error of its own."""


def spent(mendable: Sequence[type[errors.JobError]]) -> str:
    """Whether a new attempt could mend the problem, and was not allowed."""
    return f"{{% ({_mendable(mendable)} or $problem.retried = true) and {_IN_TIME} and $not({_STOPS}) %}}"


UNMENDED = _expression(
    rf"""
    $why := $not({_ROOM})
      ? 'No new attempt: one execution has room for {MOST_ATTEMPTS} of them, or for {MOST_EVENTS} events in its history.'
      : $problem.retried = true ? 'No retry is left (retries.times of the request).'
      : $lost = 0 ? 'No recovery is allowed (limits.recoveries in cdk.json).'
      : 'No recovery is left: ' & $lost & ' in a row committed no newer checkpoint (limits.recoveries in cdk.json).';
    {{'error': $problem.error, 'cause': $substring($problem.cause, 0, {CAUSE - 500}) & '\n' & $why}}
    """
)
"""The problem, with why it was the last one."""

COUNTS = {"lost": 0, "young": 0, "pause": 0, "launched_at": 0, "events": 0}
"""What a job begins with: no recovery since its newest checkpoint, no attempt that died young, no pause, no launch, no event."""
FURTHER = {
    "step": "{% $exists($states.result.Payload.step) ? $states.result.Payload.step : $step %}",
    "lost": "{% $states.result.Payload.progressed = true ? 0 : $lost %}",
}
"""What Terminate's answer says of the attempt: the highest step that was ever committed, and the recoveries since it was."""


def young(most_s: float) -> str:
    """How many attempts in a row have died young: without a newer checkpoint, and within `most_s` of their launch."""
    lived = f"$millis() >= ($launched_at + {most_s:g}) * 1000"
    return f"{{% $states.result.Payload.progressed = true or {lived} ? 0 : $young + 1 %}}"


def pause(first_s: float, longest_s: float) -> str:
    """Returns whole seconds to wait before the next attempt. At least half of the job's time is left to that."""
    doubled = f"{first_s:g} * $power(2, $min([$young - 1, 20]))"
    shortest = f"$min([{doubled}, {longest_s:g}, ($deadline - $millis() / 1000) / 2])"
    return f"{{% $young = 0 ? 0 : $floor($max([{shortest}, 0])) %}}"


def before_deadline(after_s: float) -> str:
    """Whether it is earlier than `after_s` after the job's deadline."""
    return f"{{% $millis() < ($deadline + {math.ceil(after_s)}) * 1000 %}}"


def seconds_left(after_deadline_s: float, *, least: int) -> str:
    """Returns the whole seconds until `after_deadline_s` after the job's deadline, never fewer than `least`."""
    return f"{{% $max([$deadline + {math.ceil(after_deadline_s)} - $floor($millis() / 1000), {least}]) %}}"
