"""Reads the error code of a call that AWS answered with an error, for functions, nodes and children alike."""

from __future__ import annotations

from typing import Any, Protocol


class ServiceError(Protocol):
    """What botocore's ClientError has; the contract imports no botocore."""

    response: Any


def code_of(problem: ServiceError) -> str:
    """The error's code, as in `AccessDenied`; empty where the answer has none."""
    return str(problem.response.get("Error", {}).get("Code", ""))
