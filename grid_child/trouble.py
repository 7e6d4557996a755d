"""What can go wrong with a call, in three words: unfit (no attempt does better), denied (a right is missing), trouble (it passes)."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from contract.aws_errors import code_of

DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403"})


class Unfit(Exception):
    """No attempt can do better: the environment, the plan or a right is missing. Its words are for a person."""


class Trouble(Exception):
    """A throttle, an error of the service or of the network: it passes, and nobody knows whether the call was done."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")


def status_of(problem: ClientError) -> int:
    return int(problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def words_of(problem: ClientError) -> str:
    """The service's own words."""
    return str(problem.response.get("Error", {}).get("Message", "")) or str(problem)


def trouble_of(problem: ClientError | BotoCoreError, what: str) -> Unfit | Trouble:
    """What a failed call means where no answer of the service says "no" for good but a missing right."""
    if not isinstance(problem, ClientError):
        return Trouble(type(problem).__name__, str(problem))
    if code_of(problem) in DENIED:
        return Unfit(f"{what} is not allowed: {words_of(problem)}")
    return Trouble(code_of(problem), words_of(problem))
