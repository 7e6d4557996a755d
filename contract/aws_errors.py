"""Reads the error code of AWS's answer to a failed call, for functions, nodes and children alike."""

from __future__ import annotations

from typing import Any, Protocol


class ServiceError(Protocol):
    """The part of botocore's ClientError that is used here; the contract does not import botocore."""

    response: Any


def code_of(problem: ServiceError) -> str:
    """Returns the error's code, as in `AccessDenied`; empty where the answer contains none."""
    return str(problem.response.get("Error", {}).get("Code", ""))
