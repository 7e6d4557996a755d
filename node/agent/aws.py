"""Clients of AWS services, made when they are first needed."""

from __future__ import annotations

import threading
from typing import Any

from agent.store import Store

ATTEMPTS = 10
CONNECTIONS = 32


class Aws:
    """The account as the node's role sees it. For any thread."""

    def __init__(self) -> None:
        self._session: Any = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._making = threading.Lock()  # sessions are not safe to share, clients are

    def client(self, service: str, region: str) -> Any:
        """One a service and region."""
        with self._making:
            if (service, region) not in self._clients:
                self._clients[service, region] = self._make(service, region)
            return self._clients[service, region]

    def store(self, region: str, bucket: str) -> Store:
        return Store(self.client("s3", region), bucket)

    def secret(self, region: str, arn: str) -> str:
        """The text of a secret."""
        value: str = self.client("secretsmanager", region).get_secret_value(SecretId=arn)["SecretString"]
        return value

    def _make(self, service: str, region: str) -> Any:
        import boto3.session
        from botocore.config import Config

        self._session = self._session or boto3.session.Session()
        config = Config(
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=CONNECTIONS,
        )
        return self._session.client(service, region_name=region, config=config)
