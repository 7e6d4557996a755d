"""A campaign in the rehearsed account: what a person writes and uploads, and the grid that starts by itself."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from contract import tags
from contract.campaigns import name_start
from contract.catalogue import DATABASE
from localaws.services import ec2, ec2_reservations
from rehearsal.deployment import ACCOUNT
from rehearsal.grid import PLACEHOLDER, GridJob, machine
from rehearsal.yard import Yard

RESERVED = 10
"""Instances of each Capacity Reservation that a person makes ahead."""
ASLEEP = "DatabaseResumingException"
AGAIN_S = 0.5


class Catalogue:
    """The database as a person uses it: with the keeper's secret, through the Data API."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._data = yard.client("rds-data")
        self._where = {
            "resourceArn": yard.output("Catalogue"),
            "secretArn": yard.output("CatalogueKeeperSecret"),
            "database": DATABASE,
        }

    def run(self, statement: str, limit_s: float = 60.0) -> list[dict[str, Any]]:
        """Carries out one statement, and returns its rows; asks a sleeping database again."""
        until = time.monotonic() + limit_s
        text = statement.replace(PLACEHOLDER, ACCOUNT)
        while True:
            try:
                answer = self._data.execute_statement(**self._where, sql=text, formatRecordsAs="JSON")
            except self._data.exceptions.ClientError as problem:
                if problem.response["Error"]["Code"] != ASLEEP or time.monotonic() > until:
                    raise
                time.sleep(AGAIN_S)
            else:
                rows: list[dict[str, Any]] = json.loads(answer.get("formattedRecords") or "[]")
                return rows

    def learn(self) -> None:
        """Has the keeper write prices and capacity of the types that campaigns name. Raises RuntimeError if it fails."""
        answer = self._yard.client("lambda").invoke(
            FunctionName=self._yard.output("CatalogueKeeper"), Payload=json.dumps({"action": "read"}).encode()
        )
        if "FunctionError" in answer:
            raise RuntimeError(f"the keeper failed: {answer['Payload'].read().decode()}")


def reserve(yard: Yard, instance_type: str, regions: Sequence[str]) -> None:
    """Makes a Capacity Reservation for the deployment in each of these regions, as a person does in the console."""
    for region in regions:
        zone = yard.client("ec2", region).describe_availability_zones()["AvailabilityZones"][0]["ZoneName"]
        ours = {tags.DEPLOYMENT: yard.context["trainyard"]["deployment"]}
        with ec2.machines().lock:
            ec2_reservations.reserve(ec2.machines().regions[region], instance_type, zone, RESERVED, tags=ours)


class StartedGrid(GridJob):
    """A grid that starts by itself, or does not."""

    def has_started(self) -> bool:
        steps = self.yard.client("stepfunctions")
        try:
            steps.describe_execution(executionArn=self.arn)
        except steps.exceptions.ExecutionDoesNotExist:
            return False
        return True


def upload_marker(yard: Yard, campaign: str, folder: str) -> StartedGrid:
    """Uploads the object that starts the campaign; returns the grid that it will start, by its name."""
    settings = yard.context["trainyard"]["campaigns"][campaign]
    key = f"{settings['prefix']}{folder}/{settings['suffix']}"
    version = yard.client("s3").put_object(Bucket=yard.places.home, Key=key, Body=b"")["VersionId"]
    name = name_start(campaign, yard.places.home, key, version)
    arn = machine(yard).replace(":stateMachine:", ":execution:")
    return StartedGrid(yard, name, f"{arn}:{name}")


def wait_for_start(job: StartedGrid, limit_s: float) -> None:
    """Waits until the grid has started by itself. Raises TimeoutError."""
    until = time.monotonic() + limit_s
    while not job.has_started():
        if time.monotonic() > until:
            raise TimeoutError(f"nothing has started {job.name} after {limit_s:.0f} s")
        time.sleep(AGAIN_S)


def wait_for_runs(catalogue: Catalogue, grid: str, lines: int, limit_s: float) -> list[dict[str, Any]]:
    """Waits until the keeper has written the grid's lines; returns their rows. Raises TimeoutError."""
    until = time.monotonic() + limit_s
    statement = (
        "select split_part(name, '/', 2) as line, region, type, outcome, metrics::text as metrics, round(cost_usd::numeric, 4) as usd "
        f"from trainyard.runs where name like '{grid}/%' order by name"
    )
    while len(rows := catalogue.run(statement)) < lines:
        if time.monotonic() > until:
            raise TimeoutError(f"the catalogue has {len(rows)} of the {lines} lines of {grid} after {limit_s:.0f} s")
        time.sleep(AGAIN_S)
    return rows
