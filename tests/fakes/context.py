"""What the handlers ask of Lambda's context."""

from __future__ import annotations

from typing import cast

from aws_lambda_powertools.utilities.typing import LambdaContext

from tests.fakes.clock import Clock


def context(clock: Clock, request_id: str, end: float, function: str = "") -> LambdaContext:
    """Of the invocation `request_id` of `function`, which is cut off at `end` (UTC epoch seconds of `clock`)."""
    return cast(LambdaContext, _Context(clock, request_id, end, function))


class _Context:
    def __init__(self, clock: Clock, request_id: str, end: float, function: str) -> None:
        self.aws_request_id, self.function_name = request_id, function
        self._clock, self._end = clock, end

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._end - self._clock.now) * 1000))
