"""Ends a command with one line and an exit code: what a person did wrong, lacks, or has to wait for. No error is a traceback."""

from __future__ import annotations

import os
import re
import traceback
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol

from contract.aws_errors import code_of
from contract.codec import Garbled
from contract.text import one_line

DEBUG = "TRAINYARD_DEBUG"
"""Variable with which a fault of this program keeps its traceback."""
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
    {
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "SlowDown",
        "ProvisionedThroughputExceededException",
    }
)
BUSY_STATUS = 500
"""HTTP status from which on a service says that the fault is its own."""
RENEW = "allowed: new ones (aws sso login, or aws configure), or --profile with the name of another profile"


class CommandExit(IntEnum):
    """Exit codes of the command line."""

    DONE = 0
    FAILED = 1
    """What was started, or looked at, went wrong."""
    STOPPED = 2
    """The command cannot be carried out: nothing was started."""
    LEFT = 130
    """Following ended before what was followed: a person stopped it, or AWS did not answer any more. It goes on."""


class CannotProceed(Exception):
    """The command cannot be carried out; the message has a line for each reason."""


class OutputClosed(Exception):
    """Whoever read what is printed reads it no longer, as `head` does after its lines."""


class OutputFailed(OutputClosed):
    """What is printed can no longer be written: the disk of its file is full, for example. The message says it."""


class Complaining(Protocol):
    """What an error is printed by: a Printer."""

    def complain(self, text: str) -> None: ...

    def document(self, value: Any) -> None: ...


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
    from botocore.parsers import ResponseParserError

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
    if isinstance(problem, ResponseParserError):
        return f"network: the answer is not one of AWS: {problem}; allowed: a network, a proxy or --endpoint-url that leads to AWS"
    if isinstance(problem, aws.HTTPClientError | aws.ConnectionError):
        return f"network: {problem}; allowed: a network, a proxy or --endpoint-url through which AWS can be reached"
    if isinstance(problem, aws.BotoCoreError):
        return f"AWS: {problem}"
    if isinstance(problem, ValueError) and str(problem).startswith("Invalid endpoint"):
        return f"--endpoint-url: {problem}; allowed: an address such as https://aws.example.com (also in AWS_ENDPOINT_URL, ~/.aws/config)"
    if isinstance(problem, FileNotFoundError) and problem.filename is None:  # of getcwd
        return "the folder in which the command runs is no longer there; allowed: another one (cd)"
    if isinstance(problem, OSError) and problem.errno is not None:
        return f"{problem.filename}: {problem.strerror}" if problem.filename is not None else f"{problem.strerror}"
    return ""


def is_of_credentials(problem: Exception) -> bool:
    """Whether the caller's credentials are missing, unknown or have expired, which a person can mend."""
    from botocore import exceptions as aws

    if isinstance(problem, aws.ClientError):
        return code_of(problem) in EXPIRED | UNKNOWN
    return isinstance(
        problem,
        aws.NoCredentialsError
        | aws.PartialCredentialsError
        | aws.CredentialRetrievalError
        | aws.TokenRetrievalError
        | aws.SSOError
        | aws.UnauthorizedSSOTokenError,
    )


def is_without_answer(problem: Exception) -> bool:
    """Whether AWS may have done what was asked of it, and did not say so."""
    from botocore import exceptions as aws
    from botocore.parsers import ResponseParserError

    if isinstance(problem, aws.ClientError):
        return int(problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= BUSY_STATUS
    return isinstance(
        problem, aws.HTTPClientError | aws.ConnectionError | aws.IncompleteReadError | ResponseParserError
    )


def may_pass(problem: Exception) -> bool:
    """Whether the same call can succeed a little later."""
    from botocore.exceptions import ClientError

    is_throttled = isinstance(problem, ClientError) and code_of(problem) in THROTTLED
    return is_throttled or is_without_answer(problem) or is_of_credentials(problem)


def describe_fault(problem: Exception) -> str:
    """Words an error that this program did not foresee: what it is, where it was raised, and how to learn more."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"a fault of trainyard: {type(problem).__name__}: {problem}{where}; {DEBUG}=1 shows the traceback, which a report needs"


def name_error(problem: Exception) -> str:
    """Returns the word of an error that a program can test: AWS's own where it has one."""
    from botocore.exceptions import ClientError

    return (code_of(problem) if isinstance(problem, ClientError) else "") or type(problem).__name__


def word_problem(problem: Exception) -> str:
    """Returns the words of any error. Raises a fault of this program again where a person wants its traceback."""
    words = explain(problem)
    if not words and os.environ.get(DEBUG):
        raise problem
    return words or describe_fault(problem)


def say_problem(problem: Exception, printer: Complaining) -> None:
    """Prints an error as lines, and for a program as a document."""
    lines = [one_line(line, MOST_LINE) for line in word_problem(problem).splitlines()]
    printer.document({"error": name_error(problem), "cause": "\n".join(lines)})
    for line in lines:
        printer.complain(line)
