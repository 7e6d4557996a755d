"""Ends a command with one line and an exit code: what a person did wrong, lacks, or has to wait for. No traceback for what is expected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from contract.aws_errors import code_of
from contract.codec import Garbled
from contract.text import one_line

MOST_LINE = 2000
"""Characters of a line that is printed of an error."""
ACTION = re.compile(r"perform: ([a-z0-9-]+:[A-Za-z0-9]+)")
RESOURCE = re.compile(r"on resource: (\S+)")
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
UNKNOWN = frozenset(
    {
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "AuthFailure",
        "InvalidToken",
    }
)
DENIED = frozenset(
    {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403", "Forbidden", "AuthorizationError"}
)
THROTTLED = frozenset(
    {"Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown"}
)
RENEW = "allowed: new ones (aws sso login, or aws configure), or --profile with the name of another profile"


class CommandExit(IntEnum):
    """Exit codes of the command line."""

    DONE = 0
    FAILED = 1
    """What was started, or looked at, went wrong."""
    STOPPED = 2
    """The command cannot be carried out: nothing was started."""
    LEFT = 130
    """A person stopped following with Ctrl-C; what was followed goes on."""


class CannotProceed(Exception):
    """The command cannot be carried out; the message has a line for each reason."""


def describe_denial(problem: Exception) -> str:
    """Names the action that AWS denies to the caller, and the resource where AWS says it."""
    said = str(problem)
    action, resource = ACTION.search(said), RESOURCE.search(said)
    operation = getattr(problem, "operation_name", "the call")
    where = f" on {resource[1]}" if resource else ""
    return f"{action[1] if action else operation}{where}"


def explain_client_error(problem: Exception) -> str:
    """Words the answer of a service that rejects a call."""
    code = code_of(problem)  # type: ignore[arg-type]
    if code in EXPIRED:
        return f"credentials: they have expired ({code}); {RENEW}"
    if code in UNKNOWN:
        return f"credentials: AWS does not know them ({code}); {RENEW}"
    if code in DENIED:
        return f"rights: AWS denies you {describe_denial(problem)}; allowed: what docs/guides/command-line.md names"
    if code in THROTTLED:
        return f"AWS throttles the account ({code}), also after several tries; wait a minute, and try again"
    return f"AWS: {problem}"


def explain(problem: Exception) -> str:
    """Returns the line for an error that a person can meet; empty for any other, which is a fault of this program."""
    from botocore import exceptions as aws

    from aws.s3 import ObjectTooLarge

    if isinstance(problem, CannotProceed):
        return str(problem)
    if isinstance(problem, ObjectTooLarge | Garbled):
        return f"{problem} (in the home bucket; was it written by another version?)"
    if isinstance(problem, aws.ClientError):
        return explain_client_error(problem)
    if isinstance(problem, aws.ProfileNotFound):
        return f"--profile: {problem}; allowed: a profile of ~/.aws/config"
    if isinstance(problem, aws.NoCredentialsError | aws.PartialCredentialsError | aws.CredentialRetrievalError):
        return f"credentials: {problem}; allowed: aws configure, aws sso login, or variables such as AWS_PROFILE"
    if isinstance(problem, aws.TokenRetrievalError | aws.SSOError | aws.UnauthorizedSSOTokenError):
        return f"credentials: {problem}; {RENEW}"
    if isinstance(problem, aws.HTTPClientError | aws.ConnectionError):
        return f"network: {problem}; allowed: a network, a proxy or --endpoint-url through which AWS can be reached"
    if isinstance(problem, aws.BotoCoreError):
        return f"AWS: {problem}"
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}"
    return ""


@contextmanager
def lines_for_errors(say: object) -> Iterator[None]:
    """Turns an expected error into its lines, said by `say(line)`, and the exit code of a command that cannot be carried out."""
    assert callable(say)
    try:
        yield
    except Exception as problem:
        told = explain(problem)
        if not told:
            raise
        for line in told.splitlines():
            say(one_line(line, MOST_LINE))
        raise SystemExit(CommandExit.STOPPED) from None
