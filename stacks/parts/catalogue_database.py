"""The catalogue's database: Aurora PostgreSQL that sleeps when it is not used, in subnets without a route, behind the Data API alone."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from contract import names
from contract.catalogue import DATABASE, KEEPER, READER
from stacks.parts.acknowledged import acknowledge
from stacks.parts.logs import log_group

ENGINE = rds.AuroraPostgresEngineVersion.VER_17_7
"""From 16.3 on a cluster may sleep, from 16 on PostgreSQL itself keeps large objects out of read-only transactions. AWS brings newer minor
versions by itself."""
MOST_ACU = 2
"""4 GiB of memory: the tables of 100,000 runs fit in, and a query that ran wild for its 30 s costs less than a cent."""
PAUSE_AFTER = cdk.Duration.minutes(5)
"""The shortest that Aurora takes."""
BACKUP_DAYS = 7
PORT = 5433
"""Not PostgreSQL's own, which scanners of networks try first; nothing connects to it, because no rule lets anything in."""
SLEEPS = "It would keep a second copy of each change for days; Aurora restores the cluster to any second of a week."
ROTATION = (
    "Only functions read it, with rights on this secret alone; a rotation would wake the database, and need a function that may change "
    "the master's password. docs/guides/catalogue.md says how to change it."
)


class CatalogueSecret(secretsmanager.Secret):
    """Name and password of a role of the database; the password is drawn at deploy, and no template has it."""

    def __init__(self, scope: Construct, name: str, *, deployment: str, role: str) -> None:
        super().__init__(
            scope,
            name,
            secret_name=names.catalogue_secret(deployment, role),
            description=f"Trainyard {deployment}: the role {role} of the catalogue's database",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                secret_string_template=f'{{"username": "{role}"}}',
                generate_string_key="password",
                password_length=48,
                exclude_punctuation=True,
            ),
        )
        acknowledge(self, ROTATION, "AwsSolutions-SMG4")
        acknowledge(
            self,
            "Secrets Manager encrypts with a key of its own; `compliance` gives it the deployment's.",
            "CKV_AWS_149",
        )


class CatalogueDatabase(Construct):
    """`cluster_arn`, `cluster_id`, and a secret for each of the two roles. With `keep` it is protected, and a destroy leaves its last
    snapshot: a cluster that stayed would keep the network in which it lies."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        deployment: str,
        vpc: ec2.IVpc,
        subnets: Sequence[str],
        keep: bool,
        log_retention_days: int,
    ) -> None:
        super().__init__(scope, name)
        self.keeper = CatalogueSecret(self, "Keeper", deployment=deployment, role=KEEPER)
        self.reader = CatalogueSecret(self, "Reader", deployment=deployment, role=READER)
        log = log_group(self, "Log", days=log_retention_days, physical_name=names.catalogue_log_group(deployment))
        group = ec2.SecurityGroup(
            self,
            "Group",
            vpc=vpc,
            description="Catalogue: nothing in, nothing out; queries come by the Data API",
            allow_all_outbound=False,
        )
        places = rds.CfnDBSubnetGroup(
            self,
            "Subnets",
            db_subnet_group_description=f"Trainyard {deployment}: where the catalogue's database lies",
            subnet_ids=list(subnets),
        )
        self.cluster = rds.CfnDBCluster(
            self,
            "Cluster",
            db_cluster_identifier=names.catalogue_cluster(deployment),
            engine="aurora-postgresql",
            engine_version=ENGINE.aurora_postgres_full_version,
            database_name=DATABASE,
            master_username=KEEPER,
            master_user_password=self.keeper.secret_value_from_json("password").unsafe_unwrap(),
            serverless_v2_scaling_configuration=rds.CfnDBCluster.ServerlessV2ScalingConfigurationProperty(
                min_capacity=0, max_capacity=MOST_ACU, seconds_until_auto_pause=PAUSE_AFTER.to_seconds()
            ),
            enable_http_endpoint=True,
            db_subnet_group_name=places.ref,
            vpc_security_group_ids=[group.security_group_id],
            port=PORT,
            storage_encrypted=True,
            backup_retention_period=BACKUP_DAYS,
            copy_tags_to_snapshot=True,
            deletion_protection=keep,
            enable_cloudwatch_logs_exports=["postgresql"],
        )
        self.cluster.apply_removal_policy(cdk.RemovalPolicy.SNAPSHOT if keep else cdk.RemovalPolicy.DESTROY)
        self.cluster.node.add_dependency(log)
        self.writer = rds.CfnDBInstance(
            self,
            "Writer",
            db_cluster_identifier=self.cluster.ref,
            db_instance_class="db.serverless",
            engine="aurora-postgresql",
            publicly_accessible=False,
            auto_minor_version_upgrade=True,
        )
        self.cluster_arn = self.cluster.attr_db_cluster_arn
        self.cluster_id = self.cluster.attr_db_cluster_resource_id
        self._acknowledge(keep)

    def _acknowledge(self, keep: bool) -> None:
        """What scanners would have of a database that people work with all day."""
        iam = "No client connects to it: the Data API takes IAM's rights, and logs in with the secret's password."
        acknowledge(self.cluster, iam, "AwsSolutions-RDS6", "CKV_AWS_162")
        acknowledge(self.cluster, SLEEPS, "AwsSolutions-RDS14", "CKV_AWS_326")
        acknowledge(
            self.writer,
            "It would send figures of a machine that sleeps most of the time; RDS's metrics show its load.",
            "CKV_AWS_118",
        )
        if not keep:
            acknowledge(
                self.cluster, "The settings say that no data is kept: a destroy deletes it.", "AwsSolutions-RDS10"
            )
