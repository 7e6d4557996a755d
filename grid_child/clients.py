"""Makes boto3 clients when they are first needed, because imports take most of a child's start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from contract.kubernetes_api import LASTS_S
from grid_child.loading import loading

CONNECT_S = 5.0
READ_S = 10.0
"""SIGTERM gives 30 s: a call that hangs must leave time to ask Batch why."""


def client(service: str, region: str) -> Any:
    """A client without retries: the caller decides whether and when to repeat, with waits that SIGTERM interrupts."""
    with loading():
        import boto3

        return boto3.client(service, region_name=region, config=_once())  # type: ignore[call-overload]


@cache
def _once() -> Any:
    from botocore.config import Config

    retries: Any = {"mode": "standard", "total_max_attempts": 1}
    return Config(retries=retries, connect_timeout=CONNECT_S, read_timeout=READ_S)


def open_signer(region: str) -> tuple[Callable[[Mapping[str, Any]], str], str]:
    """Returns what presigns a call to STS as this child, and STS's address in the region."""
    with loading():
        import boto3
        from botocore.exceptions import NoCredentialsError
        from botocore.signers import RequestSigner

        session = boto3.Session(region_name=region)
        if (credentials := session.get_credentials()) is None:
            raise NoCredentialsError
        sts = session.client("sts", config=_once())
    signer = RequestSigner(sts.meta.service_model.service_id, region, "sts", "v4", credentials, session.events)

    def sign(call: Mapping[str, Any]) -> str:
        return str(signer.generate_presigned_url(dict(call), "GetCallerIdentity", LASTS_S, region))

    return sign, str(sts.meta.endpoint_url)


def open_storage(region: str) -> Any:
    """A client of S3 that repeats calls by itself, for the helpers in a pod: nothing else of theirs waits meanwhile."""
    import boto3
    from botocore.config import Config

    return boto3.client("s3", region_name=region, config=Config(retries={"mode": "standard", "total_max_attempts": 8}))
