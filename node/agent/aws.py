"""Clients of AWS services, made when they are first needed: the node's own items with its role, all else with the keys of its job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from agent.store import Store
from agent.table import NodeItems
from contract.sessions import SessionKeys

ATTEMPTS, CONNECT_S, READ_S = 10, 10, 60
SOON = {"dynamodb": (3, 5, 5)}
"""The same three for services that answer in milliseconds, and are asked again within seconds whatever happens: a call that
waited longer would only hold up the next report, or the look at a spot notice."""
CONNECTIONS = 32
METADATA_S, METADATA_ATTEMPTS = 5, 4
"""By default botocore asks the metadata service for credentials once and waits one second: too little for a machine that boots, or whose
trainer uses every processor."""


OWN = ("dynamodb",)
"""Services that the node uses as the instance that it is; it reaches all others with the keys of its job."""


class Aws:
    """Clients of the services. Safe to use from any thread."""

    def __init__(self) -> None:
        self._session: Any = None
        self._of_job: Any = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._making = threading.Lock()  # sessions are not safe to share, clients are

    def has_credentials(self) -> bool:
        """Whether the role's credentials have arrived. A client that is made before they arrive never gets any."""
        with self._making:
            return self._own_session().get_credentials() is not None

    def use(self, keys: SessionKeys, read: Callable[[], SessionKeys]) -> None:
        """Uses these keys of the job from now on, and those that `read` gives once they are near their end."""
        import boto3.session
        import botocore.session
        from botocore.credentials import CredentialProvider, CredentialResolver, RefreshableCredentials

        class OfJob(CredentialProvider):
            METHOD = "trainyard"

            def load(self) -> RefreshableCredentials:
                return RefreshableCredentials.create_from_metadata(
                    metadata=_metadata(keys), refresh_using=lambda: _metadata(read()), method=self.METHOD
                )

        made = botocore.session.Session()
        made.register_component("credential_provider", CredentialResolver([OfJob()]))
        self._of_job = boto3.session.Session(botocore_session=made)

    def keys(self) -> Any:
        """The job's keys of now: `access_key`, `secret_key`, `token`."""
        return self._of_job.get_credentials().get_frozen_credentials()

    def client(self, service: str, region: str) -> Any:
        """The client of this service and region, made once."""
        with self._making:
            if (service, region) not in self._clients:
                self._clients[service, region] = self._make(service, region)
            return self._clients[service, region]

    def store(self, region: str, bucket: str) -> Store:
        return Store(self.client("s3", region), bucket)

    def items(self, region: str, table: str, role: str, instance: str) -> NodeItems:
        return NodeItems(self.client("dynamodb", region), table, role, instance)

    def secret(self, region: str, arn: str) -> str:
        """The text of a secret."""
        value: str = self.client("secretsmanager", region).get_secret_value(SecretId=arn)["SecretString"]
        return value

    def _own_session(self) -> Any:
        import boto3.session
        import botocore.session

        if self._session is None:
            made = botocore.session.Session()
            made.set_config_variable("metadata_service_timeout", METADATA_S)
            made.set_config_variable("metadata_service_num_attempts", METADATA_ATTEMPTS)
            self._session = boto3.session.Session(botocore_session=made)
        return self._session

    def _make(self, service: str, region: str) -> Any:
        from botocore.config import Config

        attempts, connect_s, read_s = SOON.get(service, (ATTEMPTS, CONNECT_S, READ_S))
        config = Config(
            retries={"mode": "standard", "total_max_attempts": attempts},
            connect_timeout=connect_s,
            read_timeout=read_s,
            max_pool_connections=CONNECTIONS,
        )
        session = self._own_session() if service in OWN else self._of_job
        return session.client(service, region_name=region, config=config)


def _metadata(keys: SessionKeys) -> dict[str, str]:
    """As botocore wants them."""
    expiry = datetime.fromtimestamp(keys.expires, tz=timezone.utc).isoformat()
    return {
        "access_key": keys.access_key,
        "secret_key": keys.secret_key,
        "token": keys.token,
        "expiry_time": expiry,
    }
