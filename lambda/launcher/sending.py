"""Sends what a step asks EC2 for, one request for each shape, and joins the answers to one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from botocore.exceptions import BotoCoreError, ClientError

from aws.ec2 import Ec2
from aws.facts import Instance
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import LaunchShape
from launcher.answers import find_meaning
from launcher.arguments import token

MOST_MESSAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSender:
    """Of one step, at one time. `before_call` may wait for its turn, by the instances that are asked for."""

    ec2: Ec2
    intent: Intent
    step: Step
    now: Callable[[], float]
    has_time: Callable[[], bool]
    """Whether there is time for one more call."""
    before_call: Callable[[int], None]
    on_silence: Callable[[], None]
    """Hears of a call that had no answer."""

    def send(self, shapes: Sequence[LaunchShape]) -> LaunchAnswer:
        """Launches the nodes of all shapes, in their order, or returns the first answer that is none, with what was launched before it. The
        same tokens again find what they launched."""
        launched: dict[int, list[Instance]] = {}
        for number, shape in enumerate(shapes):
            answer = self._send(number) if number == 0 or self.has_time() else self._answer(LaunchOutcome.UNKNOWN)
            if isinstance(answer, LaunchAnswer):
                before = tuple(one.id for _, some in sorted(launched.items()) for one in some)
                return answer if number == 0 else _join(answer, number, before)
            launched[shape.first_rank] = answer
        nodes = [one for _, some in sorted(launched.items()) for one in some]
        return LaunchAnswer(
            outcome=LaunchOutcome.LAUNCHED,
            at=self.now(),
            instances=tuple(one.id for one in nodes),
            master_address=nodes[0].address,
            addresses=tuple(one.address for one in nodes),
        )

    def _send(self, number: int) -> list[Instance] | LaunchAnswer:
        request, script = self.step.requests[number], self.intent.user_data
        self.before_call(request["MinCount"])
        try:
            return self.ec2.run(request, user_data=script, token=token(self.step, script, number))
        except ClientError as problem:
            error = problem.response["Error"]
            status = problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            code, message = error["Code"], error.get("Message", "")
            return self._answer(find_meaning(code, message, status).outcome, code, message)
        except BotoCoreError as problem:  # time-outs and broken connections: the call may have launched instances
            self.on_silence()
            return self._answer(LaunchOutcome.UNKNOWN, type(problem).__name__, str(problem))

    def _answer(self, outcome: LaunchOutcome, code: str = "NoTimeLeft", message: str = "") -> LaunchAnswer:
        return LaunchAnswer(outcome=outcome, at=self.now(), code=code, message=message[:MOST_MESSAGE])


def _join(answer: LaunchAnswer, number: int, before: tuple[str, ...]) -> LaunchAnswer:
    """Returns the answer to a later shape, with what the earlier ones launched. Where those have ended the whole rung is asked anew."""
    kept = () if answer.outcome is LaunchOutcome.RENEW else before
    return replace(answer, shape=number, instances=kept)
