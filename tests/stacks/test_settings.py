"""What the settings refuse, and how they say it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel, ValidationError

from contract.limits import Limits
from contract.timing import Timing
from stacks import grid, search, workflow
from stacks.durations import MOST_TIMES
from stacks.settings import BLOCK, BadSettings, Settings
from tools.synthesis import CONTEXT, ROOT

HOME = {"region": "eu-central-1", "cidr": "10.70.0.0/16"}
AWAY = {"region": "eu-west-1", "cidr": "10.71.0.0/16"}

LATE_REPORTS = {"missing_report_after_s": 800_000, "missing_report_until_s": 1_600_000}
"""They go together with long patiences of Terminate."""
UNKNOWN = {
    "netwrk": " (did you mean network?); allowed: ",
    "zzz": "; allowed: campaigns, catalogue, checkpoints, compliance, copy_accounts, dashboard,",
    "network.natt": " (did you mean nat_gateways?); allowed: ",
    "limits.max_node": " (did you mean max_nodes?); allowed: ",
    "timing.heartbeat": " (did you mean heartbeat_s?); allowed: ",
    "regions.0.cdir": " (did you mean cidr?); allowed: ",
    "image_readers.account": " (did you mean accounts?); allowed: ",
    "reaper.report_olny": " (did you mean report_only?); allowed: ",
    "max_nodes": " (did you mean kubernetes.max_nodes or limits.max_nodes?); allowed: ",
    "max_hours": " (did you mean grid.limits.max_hours or limits.max_hours?); allowed: ",
    "limits.boot_allowance": " (did you mean timing.boot_allowance_s?); allowed: ",
}
"""Key to what is said of it: keys near by, of the same block or of another."""
NAME = "; allowed: 2 to 20 lower-case letters, digits and single hyphens"
SHORT_NAME = "; allowed: 2 to 40 lower-case letters, digits and single hyphens, a letter first"
NETWORK = "; allowed: a private IPv4 network with a prefix length of 16 to 24"
REGION = "; allowed: the name of a region of AWS that this release of the CDK knows, in aws"
CORPUS = "arn:aws:iam::444455556666:role/teams/corpus"
ROLE = "; allowed: the ARN of a role, of up to 128 characters, such as arn:aws:iam::111122223333:role/datasets"
NO_ROLES = (
    "corpus",
    "",
    "*",
    "arn:aws:iam::444455556666:role/*",
    "arn:aws:iam::444455556666:role/",
    "arn:aws:iam::444455556666:user/corpus",
    "arn:aws:iam::4444:role/corpus",
    "arn:aws:sts::444455556666:assumed-role/corpus/me",
    "arn:aws:iam::444455556666:role/corpus\n",
    f"arn:aws:iam::444455556666:role/{'a' * 65}",
    f"arn:aws:iam::444455556666:role/{'path/' * 20}corpus",
)
WRONG: list[tuple[str, object, str]] = [
    *(("deployment", name, NAME) for name in ("Lab", "", "a--b", "lab\n", "a" * 21)),
    ("home_region", "frankfurt", f" (there is no such region){REGION}"),
    ("home_region", "eu-central-1a", f" (there is no such region; did you mean eu-central-1?){REGION}"),
    ("regions.1.region", "xx-east-0", f" (there is no such region; did you mean us-east-2?){REGION}"),
    ("regions.1.region", "eu-central-9", f" (there is no such region; did you mean eu-central-2?){REGION}"),
    ("regions.1.region", "us-iso-east-1", f" (it belongs to the partition aws-iso){REGION}"),
    ("regions.1.cidr", "", f" (it is not an IPv4 network){NETWORK}"),
    ("regions.0.cidr", "ten", f" (it is not an IPv4 network){NETWORK}"),
    ("regions.0.cidr", 10, "; allowed: "),
    ("regions.0.cidr", "10.0.0.0/8", f" (its prefix length is 8){NETWORK}"),
    ("regions.0.cidr", "10.0.0.0/25", f" (its prefix length is 25){NETWORK}"),
    ("regions.0.cidr", "10.0.0.1/16", f" (it has host bits; the network is 10.0.0.0/16){NETWORK}"),
    ("regions.0.cidr", "10.0.0.0", f" (it has no prefix length){NETWORK}"),
    ("regions.0.cidr", "52.95.0.0/16", f" (it is public){NETWORK}"),
    ("regions.0.cidr", "172.32.0.0/16", f" (it is public){NETWORK}"),
    ("regions.0.cidr", "172.17.64.0/20", f" (172.17.0.0/16 is Docker's own network on the nodes){NETWORK}"),
    ("repositories", [], "; allowed: at least 1 item"),
    ("repositories.0", "Images", SHORT_NAME),
    ("repositories.0", "a/b", SHORT_NAME),
    ("image_readers.accounts.0", "1234", "; allowed: the twelve digits of an account"),
    ("image_readers.accounts.0", 123456789012, "; allowed: "),
    ("image_readers.accounts.0", "*", "; allowed: the twelve digits of an account"),
    ("image_readers.organizations.0", "acme", "; allowed: the id of an organization, such as o-a1b2c3d4e5"),
    ("master_port", 1023, "; allowed: greater than or equal to 1024"),
    ("master_port", 65536, "; allowed: less than or equal to 65535"),
    ("master_port", "29500", "; allowed: a whole number"),
    ("master_port", 29500.5, "; allowed: a whole number"),
    ("grid.defaults.instance_type", "g5.xlarge", "; allowed: an instance type of SageMaker, such as ml.g5.xlarge"),
    (
        "grid.defaults.image",
        "my image:v1",
        "; allowed: repository:tag of the deployment or the whole address of an image",
    ),
    ("network", None, "; allowed: an object"),
    ("network.nat_gateways", 0, "; allowed: greater than or equal to 1"),
    ("network.nat_gateways", 4, "; allowed: less than or equal to 3"),
    ("network.nat_gateways", "1", "; allowed: a whole number"),
    ("network.nat_gateways", True, "; allowed: a whole number"),
    ("network.security_groups_per_region", 0, "; allowed: greater than or equal to 1"),
    ("network.security_groups_per_region", 41, "; allowed: less than or equal to 40"),
    ("network.security_groups_per_region", 2500, "; allowed: less than or equal to 40"),
    ("network.security_groups_per_region", "16", "; allowed: a whole number"),
    ("network.security_groups_per_region", True, "; allowed: a whole number"),
    ("network.interface_endpoints.0", "s3", "; allowed: 'ec2m"),
    ("placement_groups_per_zone", 11, "; allowed: less than or equal to 10"),
    ("images.arm64", "newest", "; allowed: an AMI id (ami-...) or the name of"),
    ("images", {}, "; allowed: at least 1 item"),
    ("data_buckets.0", "s3://data", "; allowed: the name of a bucket"),
    *(("job_roles.corpus", arn, ROLE) for arn in NO_ROLES),
    ("job_roles", {f"role-{n}": CORPUS for n in range(21)}, "; allowed: at most 20 items"),
    ("job_roles", [CORPUS], "; allowed: "),
    ("git_hosts", {f"git-{n}.com": "" for n in range(6)}, "; allowed: at most 5 items"),
    ("git_hosts", ["github.com"], "; allowed: "),
    ("limits.max_nodes", 0, "; allowed: greater than or equal to 1"),
    ("limits.max_nodes", 1.5, "; allowed: a whole number"),
    ("limits.max_hours", float("nan"), "; allowed: a finite number"),
    ("limits.max_hours", 1e9, "; allowed: less than or equal to 672"),
    ("limits.volume_iops", 2999, "; allowed: greater than or equal to 3000"),
    ("limits.volume_iops", 80_001, "; allowed: less than or equal to 80000"),
    ("limits.volume_iops", "16000", "; allowed: a whole number"),
    ("limits.volume_throughput", 124, "; allowed: greater than or equal to 125"),
    ("limits.volume_throughput", 2001, "; allowed: less than or equal to 2000"),
    ("limits.volume_throughput", 250.5, "; allowed: a whole number"),
    ("limits.instance_types", [], "; allowed: at least 1 item"),
    ("limits.instance_types.0", "g5.*;rm", "; allowed: an instance type, * for any letters"),
    ("required_tags", "x", "; allowed: an object"),
    ("required_tags.team", "x", "; allowed: a list"),
    ("required_tags.team", 1, "; allowed: a list"),
    ("reaper.report_only", "yes", "; allowed: true or false"),
    ("reaper.max_share", 1.5, "; allowed: less than or equal to 1"),
    ("reaper.max_share", -0.1, "; allowed: greater than or equal to 0"),
    ("reaper.max_least", 0, "; allowed: greater than or equal to 1"),
    ("keep_data", 0.5, "; allowed: true or false"),
    ("log_retention_days", 31, "; allowed: 1, 3, 5, 7"),
]
"""Setting, a value of it, and what is said behind the value."""
NO_HOME = "trainyard.regions lacks the home region eu-central-1"
TOGETHER: dict[str, tuple[object, str]] = {
    "no block": (None, "cdk.json has no block context.trainyard"),
    "a list": ([], "cdk.json has no block context.trainyard"),
    "no regions": ({"regions": []}, NO_HOME),
    "not home": ({"regions": [AWAY]}, NO_HOME),
    "home without a network": (
        {"regions": [{"region": "eu-central-1"}, AWAY]},
        "trainyard.regions has no network for the home region eu-central-1; allowed: a cidr or a vpc, because home trains",
    ),
    "a region twice": (
        {"regions": [HOME, HOME | {"cidr": "10.80.0.0/16"}]},
        "trainyard.regions names eu-central-1 twice",
    ),
    "a region twice, once for the grid alone": (
        {"regions": [HOME, {"region": "eu-central-1"}]},
        "trainyard.regions names eu-central-1 twice",
    ),
    "overlap": (
        {"regions": [HOME, AWAY | {"cidr": "10.70.128.0/17"}]},
        "trainyard.regions: 10.70.0.0/16 of eu-central-1 overlaps 10.70.128.0/17 of eu-west-1",
    ),
    "a name of a role that is none": (
        {"job_roles": {"Corpus": CORPUS}},
        f"trainyard.job_roles.Corpus is not a key of this block{NAME}",
    ),
    "a role of another partition": (
        {"job_roles": {"corpus": CORPUS.replace("aws", "aws-cn")}},
        "trainyard.job_roles.corpus is of the partition aws-cn, and home is in aws; allowed: a role of the same partition",
    ),
    "the deployment's own job role": (
        {"job_roles": {"all": "arn:aws:iam::111122223333:role/trainyard-job-eu-central-1"}},
        "trainyard.job_roles.all is called trainyard-job-eu-central-1, as the deployment's own; allowed: a role that was made",
    ),
    "two zones only": (
        {"home_region": "us-west-1", "regions": [{"region": "us-west-1", "cidr": "10.0.0.0/16"}]},
        "trainyard.regions has a cidr for us-west-1, where accounts see two zones; allowed: only grids there (no cidr), "
        "zones with the names of the two, or a vpc with its subnets",
    ),
    "two partitions": (
        {"regions": [HOME, {"region": "cn-north-1"}]},
        "trainyard.regions names cn-north-1 of the partition aws-cn, and home is in aws; allowed: regions of one partition",
    ),
    "a host with a port": (
        {"git_hosts": {"github.com:443": ""}},
        "trainyard.git_hosts.github.com:443 is not a key of this block; allowed: the name of a host that serves git over https",
    ),
    "a secret by its ARN": (
        {"git_hosts": {"github.com": "arn:aws:secretsmanager:eu-central-1:111122223333:secret:a"}},
        "; allowed: the name of a secret of the home region, of up to 60 characters, not its ARN; empty for none",
    ),
    "more images than fit": (
        {"machine_images": {f"image-{n}": f"/{'p' * 86}" for n in range(8)}},
        "trainyard.machine_images and git_hosts take 852 characters; allowed: 827, because a function's variables have 4 KB",
    ),
    "a repository twice": ({"repositories": ["images", "images"]}, "trainyard.repositories names images twice"),
    "the cache for a repository": (
        {"repositories": ["build-cache"]},
        "trainyard.repositories names build-cache, where builds keep their layers; allowed: any other name",
    ),
    "an organization twice": (
        {"image_readers": {"organizations": ["o-a1b2c3d4e5", "o-a1b2c3d4e5"]}},
        "trainyard.image_readers.organizations names o-a1b2c3d4e5 twice",
    ),
    "an account to copy from twice": (
        {"copy_accounts": ["111122223333", "111122223333"]},
        "trainyard.copy_accounts names 111122223333 twice",
    ),
    "an endpoint twice": ({"network": {"interface_endpoints": ["sts", "sts"]}}, "interface_endpoints names sts twice"),
    "unknown family": (
        {"images": {"arm": "ami-12345678"}},
        "trainyard.images.arm is not a key of this block; allowed: 'x86_64', 'arm64', 'p3' or 'neuron'",
    ),
    "volume above its limit": (
        {"limits": {"volume_gb": 3000}},
        "volume_gb is 3000, more than max_volume_gb, which is 2000",
    ),
    "more throughput than IOPS take": (
        {"limits": {"volume_throughput": 1000}},
        "volume_throughput is 1000, and volume_iops is 3000; allowed: at most 750, a quarter of volume_iops, or volume_iops of at "
        "least 4000",
    ),
}
TIMES: dict[str, tuple[dict[str, float], str]] = {
    "no heartbeat": ({"heartbeat_s": 0}, "heartbeat_s is 0.0; allowed: more than 0 seconds"),
    "silence below reports": ({"silence_s": 40}, "silence_s is 40.0; allowed: at least 2 x report_every_s"),
    "a second cleanup later than SQS can send": (
        {"cleanup_again_s": 901, "reaper_grace_s": 901},
        "cleanup_again_s is 901.0; allowed: at most 900, because SQS delays no message longer",
    ),
    "a second cleanup before instances can be seen": (
        {"cleanup_again_s": 4},
        "cleanup_again_s is 4.0; allowed: at least visibility_s",
    ),
    "a clock of the cleanup that looks before the reaper": (
        {"missing_report_after_s": 599, "terminate_patience_s": 200},
        "missing_report_after_s is 599.0; allowed: at least reaper_grace_s",
    ),
    "a clock of the cleanup that looks while the event's message comes back": (
        {"missing_report_after_s": 1199},
        "missing_report_after_s is 1199.0; allowed: at least 2 x terminate_patience_s",
    ),
    "a clock of the cleanup that looks once at most": (
        {"missing_report_until_s": 2000},
        "missing_report_until_s is 2000.0; allowed: at least 2 x missing_report_after_s",
    ),
    "a second look that misses the next pass": (
        {"reaper_second_look_s": 300},
        "reaper_second_look_s is 300.0; allowed: at most 200, because passes are 240 to 360 s apart",
    ),
    "a reaper too patient for ten minutes": (
        {"reaper_after_deadline_s": 300},
        "reaper_after_deadline_s is 300.0; allowed: at most 240, because with 300 s from look to look",
    ),
    "a reaper quicker than the cleanup": (
        {"reaper_grace_s": 59},
        "reaper_grace_s is 59.0; allowed: at least cleanup_again_s",
    ),
    "a reaper that ends what cannot be seen yet": (
        {"visibility_s": 301, "cleanup_again_s": 301},
        "reaper_grace_s is 600.0; allowed: at least 2 x visibility_s",
    ),
    "a reaper quicker than the nodes' own timers": (
        {"reaper_longest_margin_s": 299},
        "reaper_longest_margin_s is 299.0; allowed: at least power_off_after_deadline_s",
    ),
    "a destroy more patient than CloudFormation": (
        {"drain_patience_s": 3001},
        "drain_patience_s is 3001.0; allowed: at most 3000, because CloudFormation waits 3600 s",
    ),
    "a destroy without a second look": (
        {"drain_patience_s": 14, "cleanup_again_s": 10},
        "drain_patience_s is 14.0; allowed: at least drain_again_s",
    ),
    "more tries of a start than SQS delivers": (
        {"start_again_s": 60},
        "start_patience_s is 86400.0; allowed: at most 1000 x start_again_s, because SQS delivers a message 1,000 times at most",
    ),
    "more tries of a cleanup than SQS delivers": (
        {"terminate_again_s": 1, "terminate_patience_s": 667, **LATE_REPORTS},
        "terminate_patience_s is 667.0; allowed: at most 666 x terminate_again_s, because SQS delivers",
    ),
    "more tries of a search's cleanup than SQS delivers": (
        {"grid_collect_again_s": 2},
        "grid_stop_patience_s is 900.0; allowed: at most 333 x grid_collect_again_s, because SQS delivers",
    ),
    **{
        f"{name} longer than SQS hides a message": (
            {name: 42_001.0, patience: 399_999.0, **LATE_REPORTS},
            f"{name} is 42001.0; allowed: at most 42000, because SQS hides a message for 12 hours at most",
        )
        for name, patience in (
            ("start_again_s", "start_patience_s"),
            ("terminate_again_s", "terminate_patience_s"),
            ("grid_collect_again_s", "grid_stop_patience_s"),
        )
    },
    "a start that is tried longer than its message is kept": (
        {"start_again_s": 40_000, "start_patience_s": 1_200_001},
        "start_patience_s is 1200001.0; allowed: at most 1200000, because SQS keeps a message for 14 days",
    ),
    "a search's cleanup that is tried longer than its message is kept": (
        {"grid_collect_again_s": 40_000, "grid_stop_patience_s": 400_001},
        "grid_stop_patience_s is 400001.0; allowed: at most 400000, because SQS keeps a message for 14 days",
    ),
    "more seconds than Step Functions counts": (
        {"sync_patience_s": 2_592_001},
        "sync_patience_s is 2592001.0; allowed: more than 0 seconds, up to 2592000",
    ),
}


def given(path: str, value: object) -> dict[str, Any]:
    """Settings with that value at `limits.max_nodes`, or at `regions.1.cidr`, behind home."""
    *above, last = path.split(".")
    if above[:1] == ["regions"]:
        places: list[dict[str, Any]] = [dict(HOME), {"region": "eu-west-1"}]
        del places[int(above[1]) + 1 :]
        places[-1][last] = value
        return {"regions": places}
    raw: Any = value
    for part in reversed([*above, last]):
        raw = [raw] if part.isdigit() else {part: raw}
    return cast("dict[str, Any]", raw)


def refusal(raw: object) -> str:
    with pytest.raises(BadSettings) as refused:
        Settings.parse(raw)
    return str(refused.value)


@pytest.mark.parametrize("key", UNKNOWN)
def test_a_key_that_is_no_setting_is_told_with_the_nearest_that_are(key: str) -> None:
    assert f"trainyard.{key} is not a setting{UNKNOWN[key]}" in refusal(given(key, 1))


@pytest.mark.parametrize(("path", "value", "told"), WRONG, ids=[f"{path}: {value!r}" for path, value, _ in WRONG])
def test_a_value_that_does_not_fit_is_refused_with_its_key_and_what_is_allowed(
    path: str, value: object, told: str
) -> None:
    shown = f"is {json.dumps(value)}"
    if isinstance(value, dict) and len(value) > 20:
        shown = f"has {len(value)} entries"
    assert f"trainyard.{path} {shown}{told}" in refusal(given(path, value))


@pytest.mark.parametrize("case", TOGETHER)
def test_settings_that_do_not_go_together_are_refused(case: str) -> None:
    raw, message = TOGETHER[case]
    assert message in refusal(raw)


@pytest.mark.parametrize("case", TIMES)
def test_durations_that_do_not_go_together_are_refused(case: str) -> None:
    timing, message = TIMES[case]
    assert message in refusal({"timing": timing})


def test_no_queue_is_deployed_whose_messages_come_back_more_often_than_sqs_takes() -> None:
    times = {longer: times for longer, times, _, _ in MOST_TIMES}
    assert times["start_patience_s"] <= 1000
    assert times["terminate_patience_s"] * workflow.WALK_AND_REFUSALS <= 1000
    assert times["grid_stop_patience_s"] * max(grid.MORE_RECEIVES, search.MORE_RECEIVES) <= 1000


def test_every_problem_has_a_line_of_its_own() -> None:
    wrong = {"netwrk": {}, "deployment": "X", "limits": {"max_nodes": 0, "max_hours": 0}}
    assert len(refusal(wrong).splitlines()) == 4


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


def test_a_rehearsal_divides_every_duration_but_those_of_cloudformation() -> None:
    usual, divided = asdict(Timing()), asdict(Timing().divided(10.0))
    assert {name for name, value in divided.items() if value == usual[name]} == {"image_patience_s", "drain_patience_s"}
    assert all(value == round(usual[name] / 10, 3) for name, value in divided.items() if value != usual[name])


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
