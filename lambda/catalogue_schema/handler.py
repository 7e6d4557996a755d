"""The function of the catalogue's schema: CloudFormation calls it once the database exists, whenever the files of SQL change, and before it
deletes the cluster."""

from __future__ import annotations

import secrets as randomness
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_lambda_powertools import Logger

from aws import rds
from aws.cloudformation import send
from aws.data_api import DataApi
from aws.secrets import read_password
from catalogue_schema.migration import migrate, set_password
from catalogue_schema.policy import join_names, read_files, verify_with
from contract.catalogue import PROTECTION, CatalogueAccess
from contract.catalogue_environments import CatalogueSchemaEnvironment

logger = Logger(service="catalogue_schema")
FILES = Path(__file__).parent / "sql"
SALT_BYTES = 16


def handler(event: Mapping[str, Any], _context: object) -> None:
    """Answers CloudFormation, even after an error. May be called twice. Without an answer's address, a person calls it, as after a change
    of the reader's secret: then an error is raised."""
    env = CatalogueSchemaEnvironment.read()
    if "ResponseURL" not in event:
        _bring_up_to_date(env)
        return
    problem = None
    try:
        _answer_resource(env, event["ResourceType"] == PROTECTION, event["RequestType"] == "Delete")
    except Exception as error:
        logger.exception("the request failed", request=event["RequestType"])
        problem = f"{type(error).__name__}: {error}"
    # Constant: an update replaces nothing.
    send(
        event,
        f"{env.deployment}-catalogue-{'protection' if event['ResourceType'] == PROTECTION else 'schema'}",
        problem,
    )


def _answer_resource(env: CatalogueSchemaEnvironment, is_protection: bool, is_delete: bool) -> None:
    """Lifts the protection when its resource is deleted, which needs no writer, and makes the schema whenever its own is not."""
    if is_protection and is_delete:
        rds.lift_protection(env.cluster)
    elif not is_protection and not is_delete:
        _bring_up_to_date(env)


def _bring_up_to_date(env: CatalogueSchemaEnvironment) -> None:
    database = DataApi(CatalogueAccess(cluster=env.cluster, secret=env.keeper_secret))
    applied = migrate(database, read_files({one.name: one.read_text() for one in FILES.glob("*.sql")}))
    set_password(database, verify_with(read_password(env.reader_secret), randomness.token_bytes(SALT_BYTES)))
    logger.info("the schema is up to date", applied=join_names(applied))
