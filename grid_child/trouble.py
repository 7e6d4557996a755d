"""Tells failures of calls apart: Unfit, which no later attempt can change, and Trouble, which passes."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from contract.aws_errors import code_of

DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403"})


class Unfit(Exception):
    """No later attempt can succeed: the environment, the plan or a permission is missing. The message is for a person."""


class Trouble(Exception):
    """A throttle, or an error of the service or the network. It passes; whether the call took effect is not known."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")


def status_of(problem: ClientError) -> int:
    return int(problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def words_of(problem: ClientError) -> str:
    """The service's own words."""
    return str(problem.response.get("Error", {}).get("Message", "")) or str(problem)


def trouble_of(problem: ClientError | BotoCoreError, what: str) -> Unfit | Trouble:
    """The failure of a call: Unfit where a permission is missing, Trouble otherwise."""
    if not isinstance(problem, ClientError):
        return Trouble(type(problem).__name__, str(problem))
    if code_of(problem) in DENIED:
        return Unfit(f"{what} is not allowed: {words_of(problem)}")
    return Trouble(code_of(problem), words_of(problem))
