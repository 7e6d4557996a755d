"""With `catalogue` there is a database that sleeps, that nothing reaches by the network, and whose passwords no template has."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from typing import Any

import pytest

from contract.catalogue import KEEPER, PROTECTION, READER, REMEMBERED
from contract.errors import DatabaseAway
from stacks import catalogue
from stacks.parts.assembled import LAMBDA
from stacks.parts.network import database_blocks
from stacks.settings import BadSettings, Settings
from tests.stacks.synth import artifacts, every, logical_id, only, plain, resources, rights
from tools.configurations import EXISTING, SUBNETS
from tools.synthesis import CONTEXT, Synthesised, definition, masked, synthesise_once

HOME = "eu-central-1"


@pytest.fixture(scope="module")
def catalogued() -> Synthesised:
    return synthesise_once(catalogue=True)


@pytest.fixture(scope="module")
def template(catalogued: Synthesised) -> dict[str, Any]:
    return catalogued.template("catalogue")


@pytest.fixture(scope="module")
def cluster(template: dict[str, Any]) -> dict[str, Any]:
    return only(template, "AWS::RDS::DBCluster")


def refusal(**changes: object) -> str:
    with pytest.raises(BadSettings) as refused:
        Settings.parse({**CONTEXT["trainyard"], "catalogue": True, **changes})
    return str(refused.value)


def plainly(resource: object) -> str:
    return masked(json.dumps(resource))


# The switch


def test_without_the_switch_there_is_no_stack_and_no_word_of_it(deployment: Synthesised) -> None:
    assert "trainyard-catalogue" not in deployment.stacks
    assert [stack for stack, one in deployment.stacks.items() if "atalogue" in json.dumps(one["Resources"])] == []


def test_the_switch_changes_nothing_of_what_stands(deployment: Synthesised, catalogued: Synthesised) -> None:
    changed = {
        f"{stack}/{name}"
        for stack, one in deployment.stacks.items()
        for name, resource in one["Resources"].items()
        if stack not in {"trainyard-grid", "trainyard-dashboard"}  # queries read it, and its alarms are shown
        and plainly(resource) != plainly(catalogued.stacks[stack]["Resources"].get(name))
    }
    assert changed == set()


def test_it_stands_before_the_grid_and_goes_before_the_network(catalogued: Synthesised) -> None:
    found = artifacts(catalogued)
    assert "trainyard-catalogue" in found["trainyard-grid"]["dependencies"]
    assert {"trainyard-foundation", f"trainyard-region-{HOME}"} <= set(found["trainyard-catalogue"]["dependencies"])


def test_a_plan_whose_database_is_away_is_made_again_for_some_minutes(
    catalogued: Synthesised, grid_machine: dict[str, Any]
) -> None:
    (retry,) = definition(catalogued.template("grid"))["States"]["Plan"]["Retry"]
    (alone,) = grid_machine["States"]["Plan"]["Retry"]
    assert retry == {**alone, "ErrorEquals": [*alone["ErrorEquals"], DatabaseAway.__name__]}
    assert DatabaseAway.__name__ not in alone["ErrorEquals"]


# The database


def test_it_sleeps_after_five_minutes_and_never_grows_beyond_two_units(cluster: dict[str, Any]) -> None:
    assert cluster["ServerlessV2ScalingConfiguration"] == {
        "MinCapacity": 0,
        "MaxCapacity": 2,
        "SecondsUntilAutoPause": 300,
    }


def test_it_is_encrypted_backed_up_logged_and_behind_the_data_api(
    template: dict[str, Any], cluster: dict[str, Any]
) -> None:
    wanted = {
        "StorageEncrypted": True,
        "BackupRetentionPeriod": 7,
        "EnableHttpEndpoint": True,
        "EnableCloudwatchLogsExports": ["postgresql"],
        "CopyTagsToSnapshot": True,
        "MasterUsername": KEEPER,
        "DBSubnetGroupName": {"Ref": logical_id(template, "AWS::RDS::DBSubnetGroup")},
        "VpcSecurityGroupIds": [{"Fn::GetAtt": [logical_id(template, "AWS::EC2::SecurityGroup"), "GroupId"]}],
    }
    assert {name: cluster.get(name) for name in wanted} == wanted


def test_no_library_moves_the_database_to_another_version_or_address(cluster: dict[str, Any]) -> None:
    wanted = {
        "Engine": "aurora-postgresql",
        "EngineVersion": "17.7",
        "Port": 5433,
        "DatabaseName": "trainyard",
        "DBClusterIdentifier": "trainyard-catalogue",
    }
    assert {name: cluster.get(name) for name in wanted} == wanted


def test_the_writer_sleeps_with_the_cluster_and_gets_newer_minor_versions(template: dict[str, Any]) -> None:
    writer = only(template, "AWS::RDS::DBInstance")
    assert writer["DBClusterIdentifier"] == {"Ref": logical_id(template, "AWS::RDS::DBCluster")}
    assert (writer["DBInstanceClass"], writer["Engine"]) == ("db.serverless", "aurora-postgresql")
    assert writer["AutoMinorVersionUpgrade"] is True


def test_the_log_is_made_before_rds_would_make_one_that_is_kept_for_ever(template: dict[str, Any]) -> None:
    log = logical_id(template, "AWS::Logs::LogGroup", "DatabaseLog")
    assert template["Resources"][log]["Properties"]["LogGroupName"] == "/aws/rds/cluster/trainyard-catalogue/postgresql"
    assert log in template["Resources"][logical_id(template, "AWS::RDS::DBCluster")]["DependsOn"]


def test_nothing_comes_in_and_nothing_goes_out(template: dict[str, Any]) -> None:
    group = only(template, "AWS::EC2::SecurityGroup")
    assert "SecurityGroupIngress" not in group
    assert [one["CidrIp"] for one in group["SecurityGroupEgress"]] == ["255.255.255.255/32"]
    assert resources(template, "AWS::EC2::SecurityGroupIngress") == {}
    assert only(template, "AWS::RDS::DBInstance")["PubliclyAccessible"] is False


def test_its_subnets_have_no_route(template: dict[str, Any]) -> None:
    assert len(resources(template, "AWS::EC2::Subnet")) == 3
    assert resources(template, "AWS::EC2::Route") == {}


def test_its_subnets_lie_where_no_other_subnet_lies(catalogued: Synthesised) -> None:
    found = [IPv4Network(one["CidrBlock"]) for _, one in every(catalogued, "AWS::EC2::Subnet")]
    assert [(one, other) for one in found for other in found if one is not other and one.overlaps(other)] == []


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "10.0.0.0/20", "10.0.8.0/21"])
def test_blocks_lie_inside_of_the_network_one_a_zone(cidr: str) -> None:
    blocks = database_blocks(cidr)
    assert len(blocks) == 3
    assert all(one.subnet_of(IPv4Network(cidr)) for one in blocks)


def test_data_that_is_kept_is_protected_and_leaves_a_snapshot(template: dict[str, Any]) -> None:
    """Not the cluster itself: it would keep the network, and so the whole region's stack, from being deleted."""
    whole = template["Resources"][logical_id(template, "AWS::RDS::DBCluster")]
    assert whole["Properties"]["DeletionProtection"] is True
    assert (whole["DeletionPolicy"], whole["UpdateReplacePolicy"]) == ("Snapshot", "Snapshot")


def test_data_that_is_not_kept_goes_with_its_stack() -> None:
    template = synthesise_once(catalogue=True, keep_data=False).template("catalogue")
    whole = template["Resources"][logical_id(template, "AWS::RDS::DBCluster")]
    assert whole["Properties"]["DeletionProtection"] is False
    assert (whole["DeletionPolicy"], whole["UpdateReplacePolicy"]) == ("Delete", "Delete")


def test_protection_is_lifted_before_the_cluster_is_deleted(template: dict[str, Any]) -> None:
    """CloudFormation deletes in the opposite order of what depends on what."""
    protection, writer = logical_id(template, PROTECTION), logical_id(template, "AWS::RDS::DBInstance")
    assert logical_id(template, "AWS::RDS::DBCluster") in template["Resources"][protection]["DependsOn"]
    assert protection in template["Resources"][writer]["DependsOn"]
    assert writer in template["Resources"][logical_id(template, "Custom::CatalogueSchema")]["DependsOn"]


def test_protection_is_lifted_where_the_writer_was_never_made(template: dict[str, Any]) -> None:
    """A first deploy that fails there deletes the cluster too: what lifts its protection waits for no writer, whatever it depends on."""
    waits, known = [logical_id(template, PROTECTION)], set[str]()
    while waits:
        whole = template["Resources"][waits.pop()]
        named = {one for one in template["Resources"] if f'"{one}"' in json.dumps(whole)} - known
        known |= named
        waits += named
    assert logical_id(template, "AWS::RDS::DBInstance") not in known


# Secrets and rights


def test_passwords_are_drawn_by_aws_and_stand_in_no_template(template: dict[str, Any]) -> None:
    secrets = resources(template, "AWS::SecretsManager::Secret").values()
    drawn = {json.loads(one["GenerateSecretString"]["SecretStringTemplate"])["username"] for one in secrets}
    assert drawn == {KEEPER, READER}
    assert [one for one in secrets if "SecretString" in one] == []
    password = plain(only(template, "AWS::RDS::DBCluster")["MasterUserPassword"])
    assert password.startswith("{{resolve:secretsmanager:")


def test_passwords_are_long_and_of_letters_and_digits_which_rds_takes(template: dict[str, Any]) -> None:
    for one in resources(template, "AWS::SecretsManager::Secret").values():
        drawn = one["GenerateSecretString"]
        assert (drawn["PasswordLength"], drawn["ExcludePunctuation"], drawn["GenerateStringKey"]) == (
            48,
            True,
            "password",
        )


def test_no_job_may_read_the_secrets(template: dict[str, Any]) -> None:
    """Jobs may use secrets below the deployment's own path, which begins with `trainyard/`."""
    names = {one["Name"] for one in resources(template, "AWS::SecretsManager::Secret").values()}
    assert names == {"trainyard-catalogue-keeper", "trainyard-catalogue-reader"}


def test_the_schema_is_made_with_rights_on_this_cluster_and_these_secrets_alone(template: dict[str, Any]) -> None:
    found = {one.name: one for one in rights(template, "CatalogueSchema")}
    assert [name for name, one in found.items() if any("*" in resource for resource in one.resources)] == []
    assert found["LiftProtection"].actions == ("rds:ModifyDBCluster",)


def test_a_change_of_the_files_of_sql_is_a_change_of_the_template(
    template: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = only(template, "Custom::CatalogueSchema")["Files"]
    assert before == catalogue.digest_sql()
    monkeypatch.setattr(catalogue, "SQL", catalogue.SQL.parent)
    assert before != catalogue.digest_sql()


# Networks


def test_in_a_network_that_is_there_it_lies_in_the_named_subnets() -> None:
    template = synthesise_once(catalogue=True, regions=EXISTING).template("catalogue")
    assert only(template, "AWS::RDS::DBSubnetGroup")["SubnetIds"] == list(SUBNETS.values())
    assert resources(template, "AWS::EC2::Subnet") == {}


@pytest.mark.parametrize("cidr", ["10.0.0.0/22", "10.0.0.0/23", "10.0.0.0/24"])
def test_a_network_without_room_is_refused_in_words(cidr: str) -> None:
    told = refusal(regions=[{"region": HOME, "cidr": cidr}])
    assert f"the cidr {cidr} of {HOME} has no room for its 3 subnets; allowed: a /21 or larger, or a vpc" in told


def test_a_single_zone_is_refused_in_words() -> None:
    one = {"eu-central-1a": "subnet-0123456789abcdef0"}
    told = refusal(regions=[{"region": HOME, "vpc": "vpc-0123456789abcdef0", "subnets": one}])
    assert "nodes of eu-central-1 have 1 zone; allowed: 2 zones or more" in told


@pytest.mark.parametrize("value", [1, "true", None, {}])
def test_the_setting_is_true_or_false(value: object) -> None:
    with pytest.raises(BadSettings, match=r"trainyard\.catalogue"):
        Settings.parse({**CONTEXT["trainyard"], "catalogue": value})


# The keeper


def test_the_keeper_hears_of_every_end_of_jobs_and_grids(template: dict[str, Any]) -> None:
    rule = only(template, "AWS::Events::Rule")
    detail = rule["EventPattern"]["detail"]
    assert detail["status"] == ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]
    assert [plain(one).rpartition(":")[2] for one in detail["stateMachineArn"]] == ["trainyard-train", "trainyard-grid"]
    assert rule["Targets"][0]["DeadLetterConfig"]


def test_the_keeper_starts_and_ends_nothing(template: dict[str, Any]) -> None:
    actions = {action for one in rights(template, "KeeperKeeperRole") for action in one.actions}
    changing = {one for one in actions if not one.split(":")[1].startswith(("Describe", "List", "Get", "Receive"))}
    assert changing == {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "rds-data:BeginTransaction",
        "rds-data:CommitTransaction",
        "rds-data:ExecuteStatement",
        "rds-data:RollbackTransaction",
        "s3:PutObject",
        "sqs:ChangeMessageVisibility",
        "sqs:DeleteMessage",
    }


def test_the_keeper_writes_one_object_of_the_home_bucket(template: dict[str, Any]) -> None:
    (written,) = [one for one in rights(template, "KeeperKeeperRole") if "s3:PutObject" in one.actions]
    assert [one.partition("/")[2] for one in written.resources] == [REMEMBERED]


def test_nothing_of_jobs_grids_drain_and_reaper_imports_the_keeper() -> None:
    users = [file for file in LAMBDA.glob("*/*.py") if "keeper" in file.read_text() and file.parent.name != "keeper"]
    assert [file for file in users if "import keeper" in file.read_text() or "from keeper" in file.read_text()] == []
