"""Aurora clusters and their secrets in CloudFormation, which moto lacks or gets wrong; each is made with the public API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moto.cloudformation.exceptions import ValidationError
from moto.rds.models import DBCluster, rds_backends

from localaws.services import cloudformation
from localaws.services.cloudformation import Client, Kind, Properties

if TYPE_CHECKING:
    from localaws.server import LocalAws

RESOLVED = re.compile(r"\{\{resolve:secretsmanager:(arn:[^}]*?:secret:[^:}]+|[^:}]+):SecretString:([^:}]*)[^}]*\}\}")
"""A dynamic reference to a key of a secret: CloudFormation fills it in, and never shows it."""
FIXED = (
    "DBClusterIdentifier",
    "DatabaseName",
    "DBSubnetGroupName",
    "Engine",
    "KmsKeyId",
    "MasterUsername",
    "StorageEncrypted",
)
"""What CloudFormation replaces a cluster for."""
UPDATED = (
    *(
        "DeletionProtection",
        "EnableHttpEndpoint",
        "EngineVersion",
        "MasterUserPassword",
        "BackupRetentionPeriod",
        "Port",
    ),
    *("ServerlessV2ScalingConfiguration", "VpcSecurityGroupIds", "DBClusterParameterGroupName", "CopyTagsToSnapshot"),
)
GENERATED = ("PasswordLength", "ExcludeCharacters", "ExcludeLowercase", "ExcludeNumbers", "ExcludePunctuation")
GENERATED += ("ExcludeUppercase", "IncludeSpace", "RequireEachIncludedType")


def install(aws: LocalAws) -> None:
    """moto knows the HTTP endpoint of Serverless v1 alone."""
    cloudformation.forget_models()
    aws.patch(DBCluster, "enable_http_endpoint", property(_is_http_enabled, _enable_http))


def _is_http_enabled(cluster: Any) -> bool:
    return bool(getattr(cluster, "_enable_http_endpoint", False))


def _enable_http(cluster: Any, value: Any) -> None:
    cluster._enable_http_endpoint = bool(value)


def scaling(cluster: DBCluster) -> Mapping[str, Any]:
    return cluster.serverless_v2_scaling_configuration or {}


def resolve(client: Client, value: Any) -> Any:
    """Fills dynamic references in, at any depth."""
    if isinstance(value, Mapping):
        return {name: resolve(client, one) for name, one in value.items()}
    if isinstance(value, list):
        return [resolve(client, one) for one in value]
    return (
        RESOLVED.sub(lambda found: _secret_of(client, found[1])[found[2]], value) if isinstance(value, str) else value
    )


def _secret_of(client: Client, secret: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(client("secretsmanager").get_secret_value(SecretId=secret)["SecretString"])
    return found


def _cluster(client: Client, name: str, properties: Properties) -> str:
    given = {"DBClusterIdentifier": name[-63:].lower(), **resolve(client, properties)}
    return str(client("rds").create_db_cluster(**given)["DBCluster"]["DBClusterIdentifier"])


def _change_cluster(client: Client, name: str, old: Properties, new: Properties) -> None:
    """A replacement would lose the data, and is no part of a rehearsal."""
    if moved := [one for one in FIXED if old.get(one) != new.get(one)]:
        raise ValidationError(message=f"the local AWS replaces no DB cluster: {', '.join(moved)} changed")
    changed = {one: new[one] for one in UPDATED if one in new and old.get(one) != new[one]}
    client("rds").modify_db_cluster(DBClusterIdentifier=name, ApplyImmediately=True, **resolve(client, changed))


def _no_cluster(client: Client, name: str, _: Properties) -> None:
    """Without the snapshot that a policy may ask for: nothing here restores one. What is gone already is deleted, to CloudFormation."""
    rds = client("rds")
    with suppress(rds.exceptions.DBClusterNotFoundFault):
        rds.delete_db_cluster(DBClusterIdentifier=name, SkipFinalSnapshot=True)


def _of_cluster(name: str, account: str, region: str) -> dict[str, str]:
    found = rds_backends[account][region].clusters.get(name) if name else None
    return {
        "DBClusterArn": f"arn:aws:rds:{region}:{account}:cluster:{name}",
        "DBClusterResourceId": found.db_cluster_resource_id if found else "",
        "Endpoint.Address": found.endpoint if found else "",
        "Endpoint.Port": str(found.port) if found else "",
        "ReadEndpoint.Address": found.reader_endpoint if found else "",
    }


def _instance(client: Client, name: str, properties: Properties) -> str:
    given = {"DBInstanceIdentifier": name[-63:].lower(), **properties}
    return str(client("rds").create_db_instance(**given)["DBInstance"]["DBInstanceIdentifier"])


def _no_instance(client: Client, name: str, _: Properties) -> None:
    rds = client("rds")
    with suppress(rds.exceptions.DBInstanceNotFoundFault):
        rds.delete_db_instance(DBInstanceIdentifier=name, SkipFinalSnapshot=True)


def _subnet_group(client: Client, name: str, properties: Properties) -> str:
    given = {"DBSubnetGroupName": name.lower(), **properties}
    given["DBSubnetGroupDescription"] = given.get("DBSubnetGroupDescription") or name
    return str(client("rds").create_db_subnet_group(**given)["DBSubnetGroup"]["DBSubnetGroupName"])


def _parameter_group(client: Client, name: str, properties: Properties) -> str:
    """The parameters are kept, and change nothing about the server."""
    rds = client("rds")
    given: dict[str, Any] = {"DBClusterParameterGroupName": name.lower(), **properties}
    parameters, family = given.pop("Parameters", {}), given.pop("Family")
    created = rds.create_db_cluster_parameter_group(**given, DBParameterGroupFamily=family)
    identity = str(created["DBClusterParameterGroup"]["DBClusterParameterGroupName"])
    listed = [
        {"ParameterName": key, "ParameterValue": str(value), "ApplyMethod": "pending-reboot"}
        for key, value in parameters.items()
    ]
    rds.modify_db_cluster_parameter_group(DBClusterParameterGroupName=identity, Parameters=listed)
    return identity


def _secret_string(client: Client, properties: Properties) -> dict[str, str]:
    if "SecretString" in properties:
        return {"SecretString": properties["SecretString"]}
    if (wanted := properties.get("GenerateSecretString")) is None:
        return {}
    options = {one: wanted[one] for one in GENERATED if one in wanted}
    password = client("secretsmanager").get_random_password(**options)["RandomPassword"]
    if "GenerateStringKey" not in wanted:
        return {"SecretString": password}
    document = {**json.loads(wanted["SecretStringTemplate"]), wanted["GenerateStringKey"]: password}
    return {"SecretString": json.dumps(document)}


def _secret(client: Client, name: str, properties: Properties) -> str:
    given = {one: properties[one] for one in ("Description", "KmsKeyId", "Tags") if one in properties}
    given |= {"Name": properties.get("Name", name), **_secret_string(client, properties)}
    return str(client("secretsmanager").create_secret(**given)["ARN"])


def _change_secret(client: Client, arn: str, old: Properties, new: Properties) -> None:
    """A password stays unless what it is made of changes, as on AWS."""
    given = {one: new[one] for one in ("Description", "KmsKeyId") if one in new}
    if any(old.get(one) != new.get(one) for one in ("SecretString", "GenerateSecretString")):
        given |= _secret_string(client, new)
    client("secretsmanager").update_secret(SecretId=arn, **given)


def _no_secret(client: Client, arn: str, _: Properties) -> None:
    client("secretsmanager").delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)


def _attach(client: Client, _: str, properties: Properties) -> str:
    """Adds to a secret where its cluster is."""
    secret = str(properties["SecretId"])
    (cluster,) = client("rds").describe_db_clusters(DBClusterIdentifier=properties["TargetId"])["DBClusters"]
    where = {
        "dbClusterIdentifier": cluster["DBClusterIdentifier"],
        "engine": "postgres",
        "host": cluster["Endpoint"],
        "port": cluster["Port"],
        **({"dbname": cluster["DatabaseName"]} if cluster.get("DatabaseName") else {}),
    }
    document = {**_secret_of(client, secret), **where}
    client("secretsmanager").put_secret_value(SecretId=secret, SecretString=json.dumps(document))
    return secret


def _detach(client: Client, secret: str, _: Properties) -> None:
    kept = {name: one for name, one in _secret_of(client, secret).items() if name in ("username", "password")}
    client("secretsmanager").put_secret_value(SecretId=secret, SecretString=json.dumps(kept))


def _of_instance(name: str, account: str, region: str) -> dict[str, str]:
    return {"DBInstanceArn": f"arn:aws:rds:{region}:{account}:db:{name}"}


MODELS = cloudformation.models(
    {
        "AWS::RDS::DBCluster": Kind(_cluster, _no_cluster, _of_cluster, _change_cluster),
        "AWS::RDS::DBInstance": Kind(_instance, _no_instance, _of_instance),
        "AWS::RDS::DBSubnetGroup": Kind(
            _subnet_group, lambda client, name, _: client("rds").delete_db_subnet_group(DBSubnetGroupName=name)
        ),
        "AWS::RDS::DBClusterParameterGroup": Kind(
            _parameter_group,
            lambda client, name, _: client("rds").delete_db_cluster_parameter_group(DBClusterParameterGroupName=name),
        ),
        "AWS::SecretsManager::Secret": Kind(_secret, _no_secret, lambda arn, *_: {"Id": arn}, _change_secret),
        "AWS::SecretsManager::SecretTargetAttachment": Kind(_attach, _detach),
    }
)
"""Imported after moto's own classes, so that these are found."""
