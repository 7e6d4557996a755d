"""A stack with an Aurora cluster and its secret: made, reached through the Data API, changed, protected and deleted."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.conditions import Conditions
from localaws.faults import plan_faults
from localaws.server import LocalAws
from localaws.services.rds import resolve
from localaws.services.rds_data import REQUEST_BYTES
from localaws.testing.asking import questions_of
from localaws.testing.waiting import until
from localaws.tests.app import resource

pytestmark = pytest.mark.rehearsal
REGION = "eu-central-1"
SPEED = 100.0
STACK = "library"


def of_secret(key: str) -> dict[str, Any]:
    return {"Fn::Join": ["", ["{{resolve:secretsmanager:", {"Ref": "Secret"}, f":SecretString:{key}::}}}}"]]}


def subnet(zone: str, block: str) -> dict[str, Any]:
    return resource("EC2::Subnet", VpcId={"Ref": "Net"}, CidrBlock=block, AvailabilityZone=REGION + zone)


SCALING = {"MinCapacity": 0, "MaxCapacity": 2, "SecondsUntilAutoPause": 300}
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Net": resource("EC2::VPC", CidrBlock="10.0.0.0/16"),
        "One": subnet("a", "10.0.0.0/24"),
        "Two": subnet("b", "10.0.1.0/24"),
        "Subnets": resource(
            "RDS::DBSubnetGroup", DBSubnetGroupDescription="two", SubnetIds=[{"Ref": "One"}, {"Ref": "Two"}]
        ),
        "Secret": resource(
            "SecretsManager::Secret",
            GenerateSecretString={
                "SecretStringTemplate": '{"username": "keeper"}',
                "GenerateStringKey": "password",
                "PasswordLength": 30,
                "ExcludeCharacters": "\"'/@\\ ",
            },
        ),
        "Cluster": resource(
            "RDS::DBCluster",
            Engine="aurora-postgresql",
            EngineVersion="17.5",
            DatabaseName="library",
            DBSubnetGroupName={"Ref": "Subnets"},
            DeletionProtection=True,
            EnableHttpEndpoint=True,
            MasterUsername=of_secret("username"),
            MasterUserPassword=of_secret("password"),
            ServerlessV2ScalingConfiguration=SCALING,
            StorageEncrypted=True,
            Tags=[{"Key": "owner", "Value": "us"}],
        ),
        "Writer": resource(
            "RDS::DBInstance",
            DBClusterIdentifier={"Ref": "Cluster"},
            DBInstanceClass="db.serverless",
            Engine="aurora-postgresql",
        ),
        "Attachment": resource(
            "SecretsManager::SecretTargetAttachment",
            SecretId={"Ref": "Secret"},
            TargetId={"Ref": "Cluster"},
            TargetType="AWS::RDS::DBCluster",
        ),
    },
    "Outputs": {
        "Arn": {"Value": {"Fn::GetAtt": ["Cluster", "DBClusterArn"]}},
        "Host": {"Value": {"Fn::GetAtt": ["Cluster", "Endpoint.Address"]}},
        "Secret": {"Value": {"Ref": "Attachment"}},
    },
}


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws(Conditions(speed=SPEED, throttled=0.0), gaps=("cloudformation", "rds_data")) as started:
        started.client("cloudformation", REGION).create_stack(StackName=STACK, TemplateBody=json.dumps(TEMPLATE))
        yield started


def outputs(aws: LocalAws) -> dict[str, str]:
    (stack,) = aws.client("cloudformation", REGION).describe_stacks(StackName=STACK)["Stacks"]
    return {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}


def run(aws: LocalAws, sql: str, **given: Any) -> list[Any]:
    """The rows; a cluster that sleeps is asked again."""
    found, client = outputs(aws), aws.client("rds-data", REGION)
    where = {"resourceArn": found["Arn"], "secretArn": found["Secret"], "database": "library", **given}

    def rows() -> list[Any] | None:
        try:
            return [client.execute_statement(**where, sql=sql).get("records", [])]
        except client.exceptions.DatabaseResumingException:
            return None

    answer: list[Any] = until(rows)[0]
    return answer


def test_the_master_of_the_secret_owns_the_database(aws: LocalAws) -> None:
    assert run(aws, "SELECT current_user, current_database()") == [
        [{"stringValue": "keeper"}, {"stringValue": "library"}]
    ]
    run(aws, "CREATE TABLE books (title text)")
    run(aws, "CREATE ROLE reader LOGIN PASSWORD 'r'")
    name = outputs(aws)["Secret"].split(":secret:")[1]
    assert run(aws, "SELECT 1", secretArn=name.rpartition("-")[0]), "by name"


def test_the_attachment_says_where_the_cluster_is_and_keeps_the_password(aws: LocalAws) -> None:
    found = outputs(aws)
    client = aws.client("secretsmanager", REGION)
    secret = json.loads(client.get_secret_value(SecretId=found["Secret"])["SecretString"])
    assert secret.keys() == {"username", "password", "dbClusterIdentifier", "dbname", "engine", "host", "port"}
    assert (secret["host"], secret["dbname"], len(secret["password"])) == (found["Host"], "library", 30)
    assert found["Arn"].endswith(f":cluster:{secret['dbClusterIdentifier']}")


def test_a_dynamic_reference_is_filled_in_at_any_depth_and_other_text_is_left(aws: LocalAws) -> None:
    arn, client = outputs(aws)["Secret"], lambda service: aws.client(service, REGION)
    given = {
        "a": [f"user {{{{resolve:secretsmanager:{arn}:SecretString:username::}}}}"],
        "b": 1,
        "c": "{{resolve:ssm:x}}",
    }
    assert resolve(client, given) == {"a": ["user keeper"], "b": 1, "c": "{{resolve:ssm:x}}"}


def test_a_change_keeps_the_data_and_one_that_would_replace_the_cluster_fails(aws: LocalAws) -> None:
    stacks, before = aws.client("cloudformation", REGION), outputs(aws)
    run(aws, "CREATE TABLE kept (id int)")
    changed = copy.deepcopy(TEMPLATE)
    changed["Resources"]["Cluster"]["Properties"]["ServerlessV2ScalingConfiguration"] = {**SCALING, "MaxCapacity": 4}
    stacks.update_stack(StackName=STACK, TemplateBody=json.dumps(changed))
    assert outputs(aws) == before
    (cluster,) = aws.client("rds", REGION).describe_db_clusters()["DBClusters"]
    assert cluster["ServerlessV2ScalingConfiguration"]["MaxCapacity"] == 4
    assert run(aws, "SELECT count(*) FROM kept") == [[{"longValue": 0}]]
    changed["Resources"]["Cluster"]["Properties"]["DatabaseName"] = "another"
    with pytest.raises(ClientError, match="replaces no DB cluster: DatabaseName changed"):
        stacks.update_stack(StackName=STACK, TemplateBody=json.dumps(changed))
    assert run(aws, "SELECT count(*) FROM kept") == [[{"longValue": 0}]]


def test_a_new_password_of_the_master_takes_the_place_of_the_old_one(aws: LocalAws) -> None:
    found, secrets = outputs(aws), aws.client("secretsmanager", REGION)
    secret = json.loads(secrets.get_secret_value(SecretId=found["Secret"])["SecretString"])
    aws.client("rds", REGION).modify_db_cluster(
        DBClusterIdentifier=secret["dbClusterIdentifier"], MasterUserPassword="another-one", ApplyImmediately=True
    )
    with pytest.raises(ClientError, match="password authentication failed"):
        run(aws, "SELECT 1")
    secrets.put_secret_value(SecretId=found["Secret"], SecretString=json.dumps({**secret, "password": "another-one"}))
    assert run(aws, "SELECT 1")


@pytest.mark.parametrize("text", ["no JSON", '{"password": "alone"}', "[]"])
def test_a_secret_without_a_user_is_no_secret_of_a_database(aws: LocalAws, text: str) -> None:
    arn = aws.client("secretsmanager", REGION).create_secret(Name=f"other {len(text)}", SecretString=text)["ARN"]
    with pytest.raises(ClientError, match="InvalidSecretException"):
        run(aws, "SELECT 1", secretArn=arn)


def test_a_request_of_more_than_4_mib_is_refused(aws: LocalAws) -> None:
    huge = [{"name": "x", "value": {"stringValue": "x" * REQUEST_BYTES}}]
    with pytest.raises(ClientError, match="4 MiB"):
        run(aws, "SELECT 1", parameters=huge)


def test_a_database_that_is_away_is_not_available_and_loses_nothing(aws: LocalAws) -> None:
    run(aws, "CREATE TABLE there (id int)")
    before = aws.conditions
    aws.conditions = Conditions(speed=SPEED, throttled=0.0, faults=plan_faults("database-away"))
    try:
        with pytest.raises(ClientError, match="DatabaseUnavailableException"):
            run(aws, "SELECT 1")
    finally:
        aws.conditions = before
    assert run(aws, "SELECT count(*) FROM there") == [[{"longValue": 0}]]


def test_a_call_needs_the_right_to_the_cluster_and_to_the_secret() -> None:
    asked = questions_of("rds-data:CommitTransaction", REGION, resourceArn="arn:cluster", secretArn="reader")
    secret = f"arn:aws:secretsmanager:{REGION}:123456789012:secret:reader-AbCdEf"
    assert [(one.action, one.resource) for one in asked] == [
        ("rds-data:CommitTransaction", "arn:cluster"),
        ("secretsmanager:GetSecretValue", secret),
    ]


def test_calls_are_recorded_with_what_rights_depend_on(aws: LocalAws) -> None:
    run(aws, "SELECT 'recorded'")
    call = aws.recorder.of(name="rds-data:ExecuteStatement")[-1]
    assert (call.parameters["resourceArn"], call.parameters["secretArn"]) == (
        outputs(aws)["Arn"],
        outputs(aws)["Secret"],
    )


def test_a_protected_cluster_outlives_the_deletion_of_its_stack_and_an_open_one_does_not(aws: LocalAws) -> None:
    stacks, rds = aws.client("cloudformation", REGION), aws.client("rds", REGION)
    stacks.delete_stack(StackName=STACK)
    (stack,) = stacks.describe_stacks(StackName=STACK)["Stacks"]
    assert stack["StackStatus"] == "DELETE_FAILED"
    (cluster,) = rds.describe_db_clusters()["DBClusters"]
    rds.modify_db_cluster(DBClusterIdentifier=cluster["DBClusterIdentifier"], DeletionProtection=False)
    assert rds.describe_db_instances()["DBInstances"] == [], "what is gone already keeps no stack from its end"
    stacks.delete_stack(StackName=STACK)
    assert rds.describe_db_clusters()["DBClusters"] == []
    assert rds.describe_db_subnet_groups()["DBSubnetGroups"] == []
    kept = aws.client("secretsmanager", REGION).list_secrets()["SecretList"]
    assert [one["Name"] for one in kept if one["Name"].startswith(STACK)] == []
