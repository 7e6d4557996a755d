"""The Data API of the account's Aurora clusters: each cluster is a PostgreSQL server, started by the first call that needs it."""

from __future__ import annotations

import json
import math
import threading
import time
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from moto.rds.models import DBCluster, RDSBackend, rds_backends

from localaws.api import Service
from localaws.model import Refused
from localaws.postgres import Postgres
from localaws.refusing import refused
from localaws.services import rds
from localaws.services.rds_data_model import Cluster, DataApi

if TYPE_CHECKING:
    from localaws.recorder import Answer, Call, Environ
    from localaws.server import LocalAws

# docs.aws.amazon.com/rdsdataservice/latest/APIReference/API_BatchExecuteStatement.html
REQUEST_BYTES = 4 * 1024**2
PAUSE_S = 300.0
"""Seconds until a cluster with a minimum of 0 sleeps, if it sets none."""


class Servers:
    """The running servers of an account, by the id that AWS gives a cluster: a new cluster of the same name is another one."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws, self._lock = aws, threading.Lock()
        self._running: dict[str, tuple[Postgres, str]] = {}
        aws.at_stop(self.stop)

    def of(self, cluster: DBCluster) -> Postgres:
        """Returns the cluster's server, which has the master's password of now."""
        identity, password = cluster.db_cluster_resource_id, cluster._master_user_password
        with self._lock:
            if self._aws.stopping.is_set():
                raise Refused("ServiceUnavailableError", "The local AWS stops", 503)
            if identity not in self._running:
                server = Postgres(self._aws.work / "databases" / identity).start()
                server.create_master(cluster.master_username, password, cluster.database_name or "postgres")
                self._running[identity] = server, password
            server, known = self._running[identity]
            if known != password:
                server.set_password(cluster.master_username, password)
                self._running[identity] = server, password
            return server

    def end(self, cluster: DBCluster) -> None:
        with self._lock:
            server, _ = self._running.pop(cluster.db_cluster_resource_id, (None, ""))
        if server:
            server.stop()

    def stop(self) -> None:
        with self._lock:
            servers, self._running = self._running, {}
        for server, _ in servers.values():
            server.stop()


class Region:
    """The clusters and secrets of one region."""

    def __init__(self, aws: LocalAws, servers: Servers, region: str) -> None:
        self._aws, self._servers, self._region = aws, servers, region

    def find(self, arn: str) -> Cluster | None:
        if (found := self._cluster(arn)) is None:
            return None
        if self._aws.conditions.now_under("database-away"):
            raise Refused("DatabaseUnavailableException", "The writer instance isn't available.", 504)
        return Cluster(arn, bool(found.enable_http_endpoint), bool(found.members), _pause_s(found))

    def dsn(self, arn: str, database: str, user: str, password: str) -> str:
        cluster = self._cluster(arn)
        if cluster is None:
            raise Refused("DatabaseUnavailableException", "The cluster is gone.", 504)
        return self._servers.of(cluster).dsn(database, user, password)

    def credentials(self, secret: str) -> tuple[str, str]:
        client = self._aws.client("secretsmanager", self._region, throttled=False)
        try:
            text = client.get_secret_value(SecretId=secret)["SecretString"]
        except (ClientError, KeyError) as problem:
            raise Refused("SecretsErrorException", f"The secret {secret} was not found: {problem}") from problem
        try:
            document = json.loads(text)
            return str(document["username"]), str(document["password"])
        except (ValueError, KeyError, TypeError) as problem:
            raise Refused(
                "InvalidSecretException", "The secret isn't valid: it needs `username` and `password`."
            ) from problem

    def _cluster(self, arn: str) -> DBCluster | None:
        clusters = list(rds_backends[self._aws.account][self._region].clusters.values())
        return next((one for one in clusters if one.db_cluster_arn == arn), None)


def _pause_s(cluster: DBCluster) -> float:
    scaling = rds.scaling(cluster)
    if float(scaling.get("MinCapacity", 0.5)) > 0:
        return math.inf
    return float(scaling.get("SecondsUntilAutoPause", PAUSE_S))


class RdsData(Service[DataApi]):
    """Refuses what is too long before it is parsed."""

    def answer(self, call: Call, environ: Environ) -> Answer | None:
        if self.takes(call) and call.size > REQUEST_BYTES:
            return refused(call, "BadRequestException", "The request exceeds the limit of 4 MiB", 400)
        return super().answer(call, environ)


def install(aws: LocalAws) -> None:
    rds.install(aws)
    servers = Servers(aws)

    def delete(original: Any, backend: RDSBackend, *given: Any, **named: Any) -> Any:
        gone = original(backend, *given, **named)
        servers.end(gone)
        return gone

    aws.wrap(RDSBackend, "delete_db_cluster", delete)
    speed = aws.conditions.speed
    service = RdsData(
        aws,
        "rds-data",
        lambda region: DataApi(Region(aws, servers, region), time, speed),
        invalid="BadRequestException",
    )

    def close() -> None:
        for region in service.regions.values():
            region.close()

    aws.at_stop(close)
