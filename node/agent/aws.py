"""Clients of AWS services, created on first use: the node's own items with its role, all else with the credentials of its job."""

from __future__ import annotations

import os
import threading
from typing import Any

from agent.credentials import JobCredentials, watch, wrap_for_botocore
from agent.store import Store
from agent.table import NodeItems

ATTEMPTS, CONNECT_S, READ_S = 10, 10, 60
SOON = {"dynamodb": (3, 5, 5)}
"""The same three for services that answer in milliseconds, and are asked again within seconds whatever happens: a call that
waited longer would only hold up the next report, or the look at a spot notice."""
CONNECTIONS = 32
METADATA_S, METADATA_ATTEMPTS = 5, 4
"""By default botocore asks the metadata service for credentials once and waits one second: too little for a machine that boots, or whose
trainer uses every processor."""


OWN = ("dynamodb",)
"""Services that the node uses as the instance that it is; it reaches all others with the credentials of its job."""


class Aws:
    """Clients of the services. Safe to use from any thread."""

    def __init__(self) -> None:
        self.gbps = 0.0
        """Gbit/s of the machine's way to S3; 0 where it is not known."""
        self._session: Any = None
        self._of_job: Any = None
        self.job_credentials: JobCredentials
        """The credentials of the job, once there are some (`use`)."""
        self._clients: dict[tuple[str, str], Any] = {}
        self._making = threading.Lock()  # sessions are not safe to share, clients are

    def has_credentials(self) -> bool:
        """Whether the role's credentials have arrived. A client that is made before they arrive never gets any."""
        with self._making:
            return self._own_session().get_credentials() is not None

    def use(self, credentials: JobCredentials) -> None:
        """Uses the credentials of the job from now on."""
        import boto3.session
        import botocore.session
        from botocore.credentials import CredentialProvider, CredentialResolver

        class OfJob(CredentialProvider):
            METHOD = "trainyard"

            def load(self) -> Any:
                return wrap_for_botocore(credentials)

        made = botocore.session.Session()
        made.register_component("credential_provider", CredentialResolver([OfJob()]))
        self.job_credentials, self._of_job = credentials, boto3.session.Session(botocore_session=made)

    def client(self, service: str, region: str) -> Any:
        """The client of this service and region, made once."""
        with self._making:
            if (service, region) not in self._clients:
                self._clients[service, region] = self._make(service, region)
            return self._clients[service, region]

    def store(self, region: str, bucket: str) -> Store:
        return Store(self.client("s3", region), bucket, gbps=self.gbps, authorities=os.environ.get("AWS_CA_BUNDLE", ""))

    def items(self, region: str, table: str, role: str, instance: str) -> NodeItems:
        return NodeItems(self.client("dynamodb", region), table, role, instance)

    def registry_token(self, region: str) -> str:
        """The login of the private registries of a region, valid for hours: `AWS:` and a password, in base64."""
        data = self.client("ecr", region).get_authorization_token()["authorizationData"]
        token: str = data[0]["authorizationToken"]
        return token

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
        if service in OWN:
            return self._own_session().client(service, region_name=region, config=config)
        client = self._of_job.client(service, region_name=region, config=config)
        watch(client, self.job_credentials)
        return client
