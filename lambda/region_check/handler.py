"""The region check's function: CloudFormation calls it for every change of the settings' regions, networks, file systems and keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.clients import BRISK
from aws.cloudformation import rolls_back, send
from aws.file_systems import place_file_system
from aws.networks import Networks
from aws.ssm import parameter
from aws.state import State
from aws.volume_keys import read_volume_key
from contract import names
from contract.codec import decode
from contract.environments import RegionCheckEnvironment
from contract.networks import NamedFileSystem, NamedNetwork
from region_check import volume_keys
from region_check.file_systems import list_unseen, refuse_file_system
from region_check.networks import explain_silence, list_doubts, refuse_network
from region_check.policy import forgotten, join_reasons, refusals

logger = Logger(service="region_check")
AT_ONCE = 8
"""How many regions are asked in parallel."""


def handler(event: Mapping[str, Any], _context: object) -> None:
    """Answers CloudFormation, even after an error. May be called twice."""
    env = RegionCheckEnvironment.read()
    try:
        problem = _against(event, env)
    except Exception as error:
        logger.exception("the check failed", request=event["RequestType"])
        problem = f"{type(error).__name__}: {error}"
    send(event, _physical(env), problem)


def _against(event: Mapping[str, Any], env: RegionCheckEnvironment) -> str | None:
    """Says why the settings' regions, networks or keys are rejected; None where they are not. A deletion or a rollback never is."""
    if event["RequestType"] == "Delete" or (event["RequestType"] == "Update" and rolls_back(event["StackId"])):
        return None
    before = event.get("OldResourceProperties", {}).get("Regions", [])
    settings = event["ResourceProperties"]["Regions"]
    gone = forgotten(settings, before, State(env.table).launched_regions())
    asked = event["ResourceProperties"]
    networks = [decode(NamedNetwork, one) for one in asked.get("Networks", [])]
    file_systems = [decode(NamedFileSystem, one) for one in asked.get("FileSystems", [])]
    against = join_reasons(
        [
            *refusals(env.deployment, _exists(env.deployment, gone)),
            *_judge_networks(env.deployment, networks, event["StackId"].split(":")[4]),
            *_judge_file_systems(env.deployment, file_systems),
            *_judge_keys(asked.get("VolumeKeys", []), event["StackId"]),
        ]
    )
    logger.info("checked", request=event["RequestType"], settings=settings, forgotten=gone, against=against)
    return against


def _exists(deployment: str, regions: Iterable[str]) -> dict[str, bool | str]:
    """Says for each region whether its stack exists (by the stack's parameter), or why that is unknown."""

    def ask(region: str) -> bool | str:
        try:
            return parameter(names.region_parameter(deployment, region), region, BRISK) is not None
        except (ClientError, BotoCoreError) as problem:
            return str(problem)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        regions = list(regions)
        return dict(zip(regions, pool.map(ask, regions), strict=True))


def _judge_networks(deployment: str, networks: Sequence[NamedNetwork], account: str) -> list[str]:
    """Returns every reason why nodes cannot run in these networks, and one for each that could not be read. `account` is ours."""

    def judge(one: NamedNetwork) -> list[str]:
        try:
            found = Networks(one.region).read(one.vpc, list(one.subnets.values()), deployment)
        except (ClientError, BotoCoreError) as problem:
            return [explain_silence(one, str(problem))]
        if doubts := list_doubts(one, found, account):
            logger.warning("not all of a network is shown", doubts=doubts)
        return refuse_network(one, found, account)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [line for lines in pool.map(judge, networks) for line in lines]


def _judge_file_systems(deployment: str, file_systems: Sequence[NamedFileSystem]) -> list[str]:
    """Returns every reason why nodes cannot reach these file systems, and one for each that could not be looked up."""

    def judge(one: NamedFileSystem) -> list[str]:
        try:
            networks = Networks(one.region)
            found = place_file_system(one.region, one.kind, one.id)
            vpc = one.vpc or networks.find_own(deployment)[0]
            away = found is not None and vpc not in found.vpcs
            tables = networks.tables_of(vpc) if away else ()
        except (ClientError, BotoCoreError, IndexError) as problem:
            return [f"{one.region}: {one.name} could not be checked: {problem}. Deploy again once the region answers"]
        if doubts := list_unseen(one, found, vpc):
            logger.warning("not all of a way to a file system is shown", doubts=doubts)
        return refuse_file_system(one, found, vpc, tables)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [line for lines in pool.map(judge, file_systems) for line in lines]


def _judge_keys(keys: Sequence[str], stack: str) -> list[str]:
    """Returns every reason why disks cannot be encrypted under these keys, and one for each of which KMS does not answer. `stack` is the
    ARN of ours, whose partition and account say who launches."""
    _, partition, _, _, account, *_ = stack.split(":")
    spot_role = f"arn:{partition}:iam::{account}:role/{names.SPOT_ROLE}"

    def judge(key: str) -> list[str]:
        try:
            found = read_volume_key(key, volume_keys.region_of(key), spot_role)
        except (ClientError, BotoCoreError) as problem:
            return [volume_keys.explain_silence(key, str(problem))]
        if doubts := volume_keys.list_doubts(key, found, spot_role):
            logger.warning("not all of a key is known", doubts=doubts)
        return volume_keys.refuse_key(key, found)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [line for lines in pool.map(judge, keys) for line in lines]


def _physical(env: RegionCheckEnvironment) -> str:
    """Returns a constant, so that an update replaces nothing."""
    return f"{env.deployment}-regions"
