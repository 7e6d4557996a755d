"""What the settings refuse, and how they say it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from contract.environments import Limits
from contract.timing import Timing
from stacks.settings import BLOCK, BadSettings, Settings
from tools.synthesis import CONTEXT, ROOT

HOME = {"region": "eu-central-1", "cidr": "10.70.0.0/16"}
AWAY = {"region": "eu-west-1", "cidr": "10.71.0.0/16"}

REFUSED: dict[str, tuple[object, str]] = {
    "no block": (None, "cdk.json has no block context.trainyard"),
    "a list": ([], "cdk.json has no block context.trainyard"),
    "unknown key": ({"netwrk": {}}, "trainyard.netwrk is not a setting; did you mean network?"),
    "unknown key, nothing near": ({"zzz": 1}, "trainyard.zzz is not a setting; there are copy_accounts, data_buckets,"),
    "unknown key inside": (
        {"network": {"natt": 1}},
        "trainyard.network.natt is not a setting; did you mean nat_gateways?",
    ),
    "unknown limit": (
        {"limits": {"max_node": 1}},
        "trainyard.limits.max_node is not a setting; did you mean max_nodes?",
    ),
    "unknown timing": (
        {"timing": {"heartbeat": 1}},
        "trainyard.timing.heartbeat is not a setting; did you mean heartbeat_s?",
    ),
    "unknown region key": (
        {"regions": [HOME | {"cdir": 1}]},
        "trainyard.regions.0.cdir is not a setting; did you mean cidr?",
    ),
    "upper case": ({"deployment": "Lab"}, 'trainyard.deployment is "Lab"; allowed: 2 to 20 lower-case letters'),
    "empty name": ({"deployment": ""}, 'trainyard.deployment is ""; allowed: 2 to 20'),
    "double hyphen": ({"deployment": "a--b"}, "allowed: 2 to 20 lower-case letters, digits and single hyphens"),
    "newline in a name": ({"deployment": "lab\n"}, "allowed: 2 to 20 lower-case letters"),
    "long name": ({"deployment": "a" * 21}, "allowed: 2 to 20 lower-case letters"),
    "no such region name": (
        {"home_region": "frankfurt"},
        'trainyard.home_region is "frankfurt" (there is no such region); allowed: the name of a region of AWS',
    ),
    "zone for region": ({"home_region": "eu-central-1a"}, "no such region; did you mean eu-central-1?"),
    "no regions": ({"regions": []}, "trainyard.regions lacks the home region eu-central-1"),
    "home without a network": (
        {"regions": [{"region": "eu-central-1"}, AWAY]},
        "trainyard.regions has no cidr for the home region eu-central-1; allowed: a network, because home trains",
    ),
    "a region twice, once for the grid alone": (
        {"regions": [HOME, {"region": "eu-central-1"}]},
        "trainyard.regions names eu-central-1 twice",
    ),
    "more regions than policies hold": (
        {"regions": [HOME, *({"region": f"xx-east-{n % 10}"} for n in range(40))]},
        'trainyard.regions.1.region is "xx-east-0" (there is no such region; did you mean us-east-2?); allowed: ',
    ),
    "an empty network": (
        {"regions": [HOME, {"region": "eu-west-1", "cidr": ""}]},
        'regions.1.cidr is "" (it is not an IPv4 network)',
    ),
    "no repositories": ({"repositories": []}, "trainyard.repositories is []; allowed: at least 1 item"),
    "upper case in a repository": (
        {"repositories": ["Images"]},
        'repositories.0 is "Images"; allowed: 2 to 40 lower-case letters, digits and single hyphens, a letter first',
    ),
    "a path for a repository": ({"repositories": ["a/b"]}, 'repositories.0 is "a/b"; allowed: 2 to 40 lower-case'),
    "a repository twice": ({"repositories": ["images", "images"]}, "trainyard.repositories names images twice"),
    "the cache for a repository": (
        {"repositories": ["build-cache"]},
        "trainyard.repositories names build-cache, where builds keep their layers; allowed: any other name",
    ),
    "no account": (
        {"image_readers": {"accounts": ["1234"]}},
        'image_readers.accounts.0 is "1234"; allowed: the twelve digits of an account',
    ),
    "a number for an account": (
        {"image_readers": {"accounts": [123456789012]}},
        "accounts.0 is 123456789012; allowed: ",
    ),
    "everybody": (
        {"image_readers": {"accounts": ["*"]}},
        'image_readers.accounts.0 is "*"; allowed: the twelve digits',
    ),
    "no organization": (
        {"image_readers": {"organizations": ["acme"]}},
        'image_readers.organizations.0 is "acme"; allowed: the id of an organization, such as o-a1b2c3d4e5',
    ),
    "an organization twice": (
        {"image_readers": {"organizations": ["o-a1b2c3d4e5", "o-a1b2c3d4e5"]}},
        "trainyard.image_readers.organizations names o-a1b2c3d4e5 twice",
    ),
    "unknown reader": (
        {"image_readers": {"account": []}},
        "trainyard.image_readers.account is not a setting; did you mean accounts?",
    ),
    "an account to copy from twice": (
        {"copy_accounts": ["111122223333", "111122223333"]},
        "trainyard.copy_accounts names 111122223333 twice",
    ),
    "a privileged port": (
        {"master_port": 1023},
        "trainyard.master_port is 1023; allowed: greater than or equal to 1024",
    ),
    "more than a port": (
        {"master_port": 65536},
        "trainyard.master_port is 65536; allowed: less than or equal to 65535",
    ),
    "a text for a port": ({"master_port": "29500"}, 'trainyard.master_port is "29500"; allowed: '),
    "half a port": ({"master_port": 29500.5}, "trainyard.master_port is 29500.5; allowed: "),
    "not home": ({"regions": [AWAY]}, "trainyard.regions lacks the home region eu-central-1"),
    "a region twice": (
        {"regions": [HOME, HOME | {"cidr": "10.80.0.0/16"}]},
        "trainyard.regions names eu-central-1 twice",
    ),
    "overlap": (
        {"regions": [HOME, AWAY | {"cidr": "10.70.128.0/17"}]},
        "trainyard.regions: 10.70.0.0/16 of eu-central-1 overlaps 10.70.128.0/17 of eu-west-1",
    ),
    "two zones only": (
        {"home_region": "us-west-1", "regions": [{"region": "us-west-1", "cidr": "10.0.0.0/16"}]},
        "trainyard.regions has a cidr for us-west-1, where accounts see two zones; allowed: the grid alone there (no cidr)",
    ),
    "no network": (
        {"regions": [HOME | {"cidr": "ten"}]},
        'trainyard.regions.0.cidr is "ten" (it is not an IPv4 network); allowed: a private IPv4 network with a prefix length of 16 to 24',
    ),
    "large network": ({"regions": [HOME | {"cidr": "10.0.0.0/8"}]}, "(its prefix length is 8); allowed: a private"),
    "small network": ({"regions": [HOME | {"cidr": "10.0.0.0/25"}]}, "(its prefix length is 25); allowed: a private"),
    "host bits": (
        {"regions": [HOME | {"cidr": "10.0.0.1/16"}]},
        'cidr is "10.0.0.1/16" (it has host bits; the network is 10.0.0.0/16); allowed: a private IPv4 network',
    ),
    "an address": (
        {"regions": [HOME | {"cidr": "10.0.0.0"}]},
        'cidr is "10.0.0.0" (it has no prefix length); allowed: ',
    ),
    "a public network": ({"regions": [HOME | {"cidr": "52.95.0.0/16"}]}, "(it is public); allowed: a private IPv4"),
    "a network half private": ({"regions": [HOME | {"cidr": "172.32.0.0/16"}]}, "(it is public); allowed: "),
    "Docker's network": (
        {"regions": [HOME | {"cidr": "172.17.64.0/20"}]},
        "(172.17.0.0/16 is Docker's own network on the nodes); allowed: ",
    ),
    "no such region": (
        {"regions": [HOME, {"region": "eu-central-9"}]},
        'regions.1.region is "eu-central-9" (there is no such region; did you mean eu-central-2?); allowed: the name of',
    ),
    "an isolated region": (
        {"regions": [HOME, {"region": "us-iso-east-1"}]},
        "(it belongs to the partition aws-iso); allowed: the name of a region of AWS that this release of the CDK knows, in aws",
    ),
    "two partitions": (
        {"regions": [HOME, {"region": "cn-north-1"}]},
        "trainyard.regions names cn-north-1 of the partition aws-cn, and home is in aws; allowed: regions of one partition",
    ),
    "a limit at the top": ({"max_nodes": 8}, "trainyard.max_nodes is not a setting; did you mean limits.max_nodes?"),
    "a limit of jobs and of grids at the top": (
        {"max_hours": 8},
        "trainyard.max_hours is not a setting; did you mean grid.limits.max_hours or limits.max_hours?",
    ),
    "a duration among the limits": (
        {"limits": {"boot_allowance": 8}},
        "trainyard.limits.boot_allowance is not a setting; did you mean timing.boot_allowance_s?",
    ),
    "a type of EC2 for grids": (
        {"grid": {"defaults": {"instance_type": "g5.xlarge"}}},
        'grid.defaults.instance_type is "g5.xlarge"; allowed: an instance type of SageMaker, such as ml.g5.xlarge',
    ),
    "an image with a space": (
        {"grid": {"defaults": {"image": "my image:v1"}}},
        'grid.defaults.image is "my image:v1"; allowed: repository:tag of the deployment or the whole address of an image',
    ),
    "a number for a network": ({"regions": [HOME | {"cidr": 10}]}, "trainyard.regions.0.cidr is 10; allowed: "),
    "no way out": ({"network": {"nat_gateways": 0}}, "nat_gateways is 0; allowed: greater than or equal to 1"),
    "four ways out": ({"network": {"nat_gateways": 4}}, "nat_gateways is 4; allowed: less than or equal to 3"),
    "a number as text": ({"network": {"nat_gateways": "1"}}, 'nat_gateways is "1"; allowed: a valid integer'),
    "true for one": ({"network": {"nat_gateways": True}}, "nat_gateways is true; allowed: a valid integer"),
    "no object": ({"network": None}, "trainyard.network is null; allowed: an object"),
    "unknown endpoint": (
        {"network": {"interface_endpoints": ["s3"]}},
        'interface_endpoints.0 is "s3"; allowed: \'ec2m',
    ),
    "an endpoint twice": ({"network": {"interface_endpoints": ["sts", "sts"]}}, "interface_endpoints names sts twice"),
    "too many groups": (
        {"placement_groups_per_zone": 11},
        "placement_groups_per_zone is 11; allowed: less than or equal",
    ),
    "unknown family": (
        {"images": {"arm": "ami-12345678"}},
        "trainyard.images.arm is not a key of this block; allowed: 'x86_64', 'arm64' or 'p3'",
    ),
    "no image": (
        {"images": {"arm64": "newest"}},
        'images.arm64 is "newest"; allowed: an AMI id (ami-...) or the name of',
    ),
    "no images": ({"images": {}}, "trainyard.images is {}; allowed: at least 1 item"),
    "no bucket": (
        {"data_buckets": ["s3://data"]},
        'trainyard.data_buckets.0 is "s3://data"; allowed: the name of a bucket',
    ),
    "no nodes": ({"limits": {"max_nodes": 0}}, "max_nodes is 0; allowed: greater than or equal to 1"),
    "half a node": ({"limits": {"max_nodes": 1.5}}, "max_nodes is 1.5; allowed: a valid integer"),
    "no number": ({"limits": {"max_hours": float("nan")}}, "max_hours is NaN; allowed: a finite number"),
    "endless": ({"limits": {"max_hours": 1e9}}, "max_hours is 1000000000.0; allowed: less than or equal to 672"),
    "no types": ({"limits": {"instance_types": []}}, "instance_types is []; allowed: at least 1 item"),
    "shell in a type": ({"limits": {"instance_types": ["g5.*;rm"]}}, "allowed: an instance type, * for any letters"),
    "volume above its limit": (
        {"limits": {"volume_gb": 3000}},
        "volume_gb is 3000, more than max_volume_gb, which is 2000",
    ),
    "no heartbeat": ({"timing": {"heartbeat_s": 0}}, "heartbeat_s is 0.0; more than 0 seconds is allowed"),
    "silence below reports": (
        {"timing": {"silence_s": 40}},
        "silence_s is 40.0; at least 2 x report_every_s is allowed",
    ),
    "a second cleanup later than SQS can send": (
        {"timing": {"cleanup_again_s": 901, "reaper_grace_s": 901}},
        "cleanup_again_s is 901.0; at most 900 is allowed: SQS delays no message longer",
    ),
    "a second cleanup before instances can be seen": (
        {"timing": {"cleanup_again_s": 4}},
        "cleanup_again_s is 4.0; at least visibility_s is allowed",
    ),
    "a second look that misses the next pass": (
        {"timing": {"reaper_second_look_s": 300}},
        "reaper_second_look_s is 300.0; at most 200 is allowed: passes are 240 to 360 s apart",
    ),
    "a reaper too patient for ten minutes": (
        {"timing": {"reaper_after_deadline_s": 300}},
        "reaper_after_deadline_s is 300.0; at most 240 is allowed: with 300 s from look to look",
    ),
    "a reaper quicker than the cleanup": (
        {"timing": {"reaper_grace_s": 59}},
        "reaper_grace_s is 59.0; at least cleanup_again_s is allowed",
    ),
    "a reaper that ends what cannot be seen yet": (
        {"timing": {"visibility_s": 301, "cleanup_again_s": 301}},
        "reaper_grace_s is 600.0; at least 2 x visibility_s is allowed",
    ),
    "a reaper quicker than the nodes' own timers": (
        {"timing": {"reaper_longest_margin_s": 299}},
        "reaper_longest_margin_s is 299.0; at least power_off_after_deadline_s is allowed",
    ),
    "a destroy more patient than CloudFormation": (
        {"timing": {"drain_patience_s": 3001}},
        "drain_patience_s is 3001.0; at most 3000 is allowed: CloudFormation waits 3600 s",
    ),
    "a destroy without a second look": (
        {"timing": {"drain_patience_s": 14, "cleanup_again_s": 10}},
        "drain_patience_s is 14.0; at least drain_again_s is allowed",
    ),
    "unknown reaper setting": (
        {"reaper": {"report_olny": True}},
        "trainyard.reaper.report_olny is not a setting; did you mean report_only?",
    ),
    "a word for true": ({"reaper": {"report_only": "yes"}}, 'report_only is "yes"; allowed: a valid boolean'),
    "more than all": ({"reaper": {"max_share": 1.5}}, "max_share is 1.5; allowed: less than or equal to 1"),
    "less than none": ({"reaper": {"max_share": -0.1}}, "max_share is -0.1; allowed: greater than or equal to 0"),
    "a reaper that never ends anything early": (
        {"reaper": {"max_least": 0}},
        "max_least is 0; allowed: greater than or equal to 1",
    ),
    "data kept a little": ({"keep_data": 0.5}, "trainyard.keep_data is 0.5; allowed: a valid boolean"),
    "no such retention": ({"log_retention_days": 31}, "log_retention_days is 31; allowed: 1, 3, 5, 7"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_with_its_key(case: str) -> None:
    raw, message = REFUSED[case]
    with pytest.raises(BadSettings) as refusal:
        Settings.parse(raw)
    assert message in str(refusal.value)


def test_every_problem_has_a_line_of_its_own() -> None:
    with pytest.raises(BadSettings) as refusal:
        Settings.parse({"netwrk": {}, "deployment": "X", "limits": {"max_nodes": 0, "max_hours": 0}})
    assert len(str(refusal.value).splitlines()) == 4


def test_a_refusal_shows_no_traceback_of_pydantic() -> None:
    with pytest.raises(BadSettings) as refusal:
        Settings.parse({"deployment": "X"})
    assert refusal.value.__cause__ is None
    assert "pydantic" not in str(refusal.value)


def test_regions_with_a_network_train_and_the_others_serve_the_grid_home_first() -> None:
    grid = {"region": "us-west-1"}
    settings = Settings.parse({"regions": [grid, AWAY, HOME]})
    assert settings.everywhere == ("eu-central-1", "us-west-1", "eu-west-1")
    assert settings.training == ("eu-central-1", "eu-west-1")


def test_settings_do_not_change_after_they_are_parsed() -> None:
    settings = Settings.parse({})
    with pytest.raises(ValidationError):
        settings.deployment = "other"
    with pytest.raises(AttributeError):
        settings.timing.heartbeat_s = 1.0  # type: ignore[misc]


def test_cdk_json_holds_what_each_account_chooses_and_no_other_default_a_second_time() -> None:
    assert CONTEXT[BLOCK].keys() == {"deployment", "home_region", "regions"}
    assert Settings.parse(CONTEXT[BLOCK]) == Settings.parse({})


def test_limits_and_timing_are_the_contracts_own_types() -> None:
    settings = Settings.parse({})
    assert isinstance(settings.limits, Limits)
    assert isinstance(settings.timing, Timing)
    assert asdict(settings.timing) == asdict(Timing())


@pytest.mark.parametrize("speed", [1.0, 7.0, 60.0, 600.0])
def test_a_divided_timing_is_accepted(speed: float) -> None:
    divided = asdict(Timing().divided(speed))
    assert asdict(Settings.parse({"timing": divided}).timing) == divided


def test_every_knob_is_read_somewhere() -> None:
    folders = ("contract", "stacks", "lambda", "node", "grid_child")
    source = "\n".join(
        file.read_text()
        for file in [ROOT / "app.py", *(file for folder in folders for file in _python(folder))]
        if file.name != "settings.py"
    )
    unread = [knob for knob in _knobs(Settings.parse({})) if f".{knob}" not in source]
    assert unread == []


def _python(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def _knobs(block: object) -> Iterator[str]:
    names = type(block).model_fields if isinstance(block, BaseModel) else [f.name for f in fields(block)]  # type: ignore[arg-type]
    for name in names:
        value = getattr(block, name)
        yield name
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, BaseModel) or is_dataclass(inner):
                yield from _knobs(inner)
