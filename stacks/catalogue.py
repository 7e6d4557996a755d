"""The Catalogue stack (home region, optional): the database that a grid's query reads, its schema, and the keeper that fills it."""

from __future__ import annotations

import hashlib

import aws_cdk as cdk
from constructs import Construct

from contract.catalogue import PROTECTION, CatalogueAccess
from contract.catalogue_environments import CatalogueSchemaEnvironment
from stacks.foundation import FoundationExports
from stacks.parts.assembled import LAMBDA
from stacks.parts.catalogue_database import CatalogueDatabase
from stacks.parts.catalogue_keeper import CatalogueKeeper
from stacks.parts.catalogue_keeper_rights import make_schema
from stacks.parts.catalogue_subnets import find_database_subnets
from stacks.parts.common import Common
from stacks.parts.custom_resource import add_custom_resource
from stacks.parts.existing_network import ExistingNetwork
from stacks.parts.function import Function, Layer
from stacks.parts.grid_rights import GridRights
from stacks.parts.network import Network

SQL = LAMBDA / "catalogue_schema" / "sql"
SCHEMA_TIMEOUT = cdk.Duration.minutes(10)
"""Two minutes for a database that wakes, and 45 s at most for each statement, of which none on small tables takes one."""
CLOUDFORMATION_WAITS = cdk.Duration.minutes(12)


class CatalogueStack(cdk.Stack):
    """Starts nothing, and nothing waits for it: without it jobs and grids go on as before."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        foundation: FoundationExports,
        network: Network | ExistingNetwork,
        cidr: str,
        grid: GridRights,
        keep_data: bool,
    ) -> None:
        """`network` is the home region's, and `cidr` what it has of addresses where it is our own."""
        deployment = common.deployment
        super().__init__(
            scope,
            name,
            env=common.env,
            description=f"Trainyard {deployment}: the catalogue's database, its schema and its keeper",
        )
        self._common = common
        self._layer = Layer(self, "Libraries")
        database = CatalogueDatabase(
            self,
            "Database",
            deployment=deployment,
            vpc=network.vpc,
            subnets=find_database_subnets(self, network, cidr),
            keep=keep_data,
            log_retention_days=common.log_retention_days,
        )
        self._keeper_access = CatalogueAccess(cluster=database.cluster_arn, secret=database.keeper.secret_arn)
        self.exports = CatalogueAccess(cluster=database.cluster_arn, secret=database.reader.secret_arn)
        """The database as the reader."""
        self._make_schema(database)
        keeper = CatalogueKeeper(
            self,
            "Keeper",
            common=common,
            bucket=foundation.home.bucket_name,
            access=self._keeper_access,
            cluster_id=database.cluster_id,
            grid=grid,
            layer=self._layer,
            alarms=common.add_alarms(self, foundation.topic),
        )
        for output, value, what in (
            ("Catalogue", database.cluster_arn, "The catalogue's database: open it in the query editor of RDS"),
            (
                "CatalogueKeeper",
                keeper.function.function_name,
                'Invoke it with {"action": "read"} after a campaign names new types',
            ),
            ("CatalogueLetters", keeper.letters.queue_url, "Ends that the catalogue lacks"),
            (
                "CatalogueKeeperSecret",
                database.keeper.secret_arn,
                "Log in with this to write campaigns, data sets and views",
            ),
            ("CatalogueReaderSecret", database.reader.secret_arn, "Log in with this to try the query of a grid"),
        ):
            cdk.CfnOutput(self, output, value=value, description=what)

    def _make_schema(self, database: CatalogueDatabase) -> None:
        reader = database.reader.secret_arn
        function = Function(
            self,
            "CatalogueSchema",
            package="catalogue_schema",
            description="Makes the tables and roles of the catalogue",
            environment=CatalogueSchemaEnvironment(
                deployment=self._common.deployment,
                cluster=self._keeper_access.cluster,
                keeper_secret=self._keeper_access.secret,
                reader_secret=reader,
            ),
            layer=self._layer,
            timeout=SCHEMA_TIMEOUT,
            log_retention_days=self._common.log_retention_days,
            rights=make_schema(self._keeper_access, reader),
        )
        protection = add_custom_resource(
            self,
            "Protection",
            kind=PROTECTION.removeprefix("Custom::"),
            function_arn=function.function_arn,
            wait=CLOUDFORMATION_WAITS,
            after=(function, database.cluster),
            why="A deploy that fails before there is a writer has to delete a protected cluster.",
        )
        database.writer.node.add_dependency(protection)
        add_custom_resource(
            self,
            "Schema",
            kind="CatalogueSchema",
            function_arn=function.function_arn,
            wait=CLOUDFORMATION_WAITS,
            properties={"Files": digest_sql(), "Reader": reader},
            after=(function, database),
            why="Statements need the function's rights, and a database with a writer.",
        )


def digest_sql() -> str:
    """Returns what changes with every file of SQL: CloudFormation then asks the function again."""
    files = sorted(SQL.glob("*.sql"))
    return hashlib.sha256(b"".join(one.name.encode() + b"\0" + one.read_bytes() for one in files)).hexdigest()
