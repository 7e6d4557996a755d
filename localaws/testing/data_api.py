"""A client of `rds-data` over a PostgreSQL server, without an account and without HTTP; what botocore's model forbids it refuses too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partialmethod
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError
from botocore.parsers import create_parser
from botocore.validate import ParamValidator

from localaws import protocols
from localaws.model import Clock, Refused
from localaws.postgres import Postgres
from localaws.services.rds_data_model import Cluster, DataApi

ARN = "arn:aws:rds:eu-central-1:123456789012:cluster:database"


class OneServer:
    """One cluster and its server; a user's secret is named as the user is."""

    def __init__(self, server: Postgres, passwords: Mapping[str, str], cluster: Cluster) -> None:
        self._server, self._passwords, self.cluster = server, passwords, cluster

    def find(self, arn: str) -> Cluster | None:
        return self.cluster if arn == self.cluster.arn else None

    def dsn(self, arn: str, database: str, user: str, password: str) -> str:  # noqa: ARG002
        return self._server.dsn(database, user, password)

    def credentials(self, secret: str) -> tuple[str, str]:
        user = secret.rpartition(":")[2]
        if user not in self._passwords:
            raise Refused("SecretsErrorException", f"The secret {secret} was not found")
        return user, self._passwords[user]


class DataClient:
    """Has the methods of boto3's client; `resourceArn` is ARN, and `secretArn` ends with `:` and the user's name."""

    def __init__(
        self,
        server: Postgres,
        passwords: Mapping[str, str],
        *,
        cluster: Cluster | None = None,
        clock: Clock = time,  # type: ignore[assignment]
        speed: float = 1.0,
    ) -> None:
        self.databases = OneServer(server, passwords, cluster or Cluster(ARN))
        self._api = DataApi(self.databases, clock, speed)

    def close(self) -> None:
        self._api.close()

    def _call(self, operation: str, **params: Any) -> dict[str, Any]:
        model = protocols.operation("rds-data", operation)
        if problem := ParamValidator().validate(params, model.input_shape).generate_report():
            raise ParamValidationError(report=problem)
        written = protocols.answered(
            model, params, lambda: self._api.answer(operation, params), invalid="BadRequestException"
        )
        answer: dict[str, Any] = create_parser("rest-json").parse(
            {"status_code": written.status, "headers": dict(written.headers), "body": written.body}, model.output_shape
        )
        if written.error:
            raise ClientError(answer, operation)  # type: ignore[arg-type]
        return answer

    execute_statement = partialmethod(_call, "ExecuteStatement")
    batch_execute_statement = partialmethod(_call, "BatchExecuteStatement")
    begin_transaction = partialmethod(_call, "BeginTransaction")
    commit_transaction = partialmethod(_call, "CommitTransaction")
    rollback_transaction = partialmethod(_call, "RollbackTransaction")
