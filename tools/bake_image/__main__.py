"""Bakes an image for nodes: `python -m tools.bake_image --requirements FILE` (docs/guides/own-image.md)."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from stacks.settings import BLOCK, BadSettings, Settings
from tools.bake_image.image import Images
from tools.bake_image.machine import Failed, Machine, Say, Time
from tools.bake_image.plan import ARCHITECTURES, BakeOptions, base_of, plan
from tools.bake_image.recipe import Rejected, read_requirements

if TYPE_CHECKING:
    from types_boto3_ec2.client import EC2Client
    from types_boto3_ssm.client import SSMClient

ROOT = Path(__file__).parents[2]
LIMIT_MIN = 60
IMAGE_LIMIT_S = 7200.0
"""A first snapshot of 100 GiB can take the better part of an hour; it costs no machine that runs."""
OWN_TIMER_MIN = 10
"""How much later than this program the machine's own timer powers it off: only where this program is gone."""


def options(words: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bake_image", description="Makes an image for nodes with requirements in it."
    )
    parser.add_argument(
        "--requirements",
        required=True,
        type=Path,
        metavar="FILE",
        help="what pip installs; with hashes, pip checks them",
    )
    parser.add_argument(
        "--family", choices=sorted(ARCHITECTURES), default="x86_64", help="whose image of cdk.json is the base (x86_64)"
    )
    parser.add_argument("--base", default="", metavar="AMI", help="another base image")
    parser.add_argument("--region", default="", help="where the image is made (home_region of cdk.json)")
    parser.add_argument("--subnet", default="", help="a subnet of the deployment (that of its first zone)")
    parser.add_argument(
        "--security-group", default="", help="a group that lets TCP 443 out (the network's default group)"
    )
    parser.add_argument("--instance-type", default="", help="what installs (m6i.xlarge, m6g.xlarge)")
    parser.add_argument("--volume-gb", type=int, default=0, help="GiB of the image's root volume (as the base)")
    parser.add_argument("--limit-minutes", type=int, default=LIMIT_MIN, help=f"how long it may install ({LIMIT_MIN})")
    return parser.parse_args(words)


def bake(
    chosen: BakeOptions,
    settings: Settings,
    file: Path,
    limit_min: int,
    ec2: EC2Client,
    ssm: SSMClient,
    clock: Time,
    say: Say,
) -> int:
    """Bakes an image, or finds the one that was baked before. Returns an exit status: 0, or 1 where the machine could not be ended.

    Raises Rejected before anything is started, and Failed after that; both say what to do.
    """
    if not 5 <= limit_min <= 600:
        raise Rejected(f"--limit-minutes is {limit_min}; allowed: 5 to 600")
    if chosen.region not in settings.training:
        raise Rejected(
            f"--region: the deployment does not train in {chosen.region}; allowed: {', '.join(settings.training)}"
        )
    requirements = read_requirements(file)
    base = base_of(chosen, settings, ec2, ssm)
    planned = plan(chosen, settings, base, requirements, ec2, ssm)
    user_data = planned.recipe.user_data(limit_min + OWN_TIMER_MIN)
    images = Images(ec2, clock, say, chosen.region)
    if image := images.find(planned.name):
        say(f"{image} ({planned.name}) was baked before from the same base and requirements; nothing is started")
        images.wait_until_available(image, IMAGE_LIMIT_S)
        _tell_setting(image, chosen, settings, say)
        return 0
    say(f"Bakes {planned.name} from {planned.recipe.base} on a {planned.instance_type} in {planned.subnet}")
    machine = Machine(ec2, planned, clock, say, chosen.region)
    with machine.started(user_data):
        machine.wait_until_baked(limit_min * 60)
        image = images.make(machine, planned)
        try:
            images.wait_until_available(image, IMAGE_LIMIT_S)
        except KeyboardInterrupt:
            say(f"{image} is not finished. {images.removal(image)}")
            raise
    say(f"{image} ({planned.name}) is available")
    _tell_setting(image, chosen, settings, say)
    return int(machine.left)


def _tell_setting(image: str, chosen: BakeOptions, settings: Settings, say: Say) -> None:
    """An id is known in its region alone, so a deployment of several regions names a parameter that each of them has."""
    value = image
    if len(settings.training) > 1:
        value = f"/{settings.deployment}-images/{chosen.family}"
        say(
            f"The deployment trains in {', '.join(settings.training)}; each needs an image of its own, and a parameter of the same name:"
        )
        kind = "--type String --data-type aws:ec2:image"
        say(f"  aws ssm put-parameter --region {chosen.region} --overwrite {kind} --name {value} --value {image}")
    say(f"In cdk.json, block {BLOCK}, then make deploy:")
    say(f'  "images": {json.dumps({**settings.images, chosen.family: value})}')


def _read_settings() -> Settings:
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8")).get("context", {})
    return Settings.parse(context.get(BLOCK))


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main(words: Sequence[str]) -> int:
    """Returns the exit status: 0 with an image, 1 without one or with a machine left, 2 for what was rejected, 130 for an interrupt."""
    for one in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, _interrupt)  # as Ctrl-C: the machine is ended
    given = options(words)
    try:
        settings = _read_settings()
        chosen = BakeOptions(
            family=given.family,
            region=given.region or settings.home_region,
            base=given.base,
            subnet=given.subnet,
            security_group=given.security_group,
            instance_type=given.instance_type,
            volume_gb=given.volume_gb,
        )
        config = Config(connect_timeout=10, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 5})
        ec2: EC2Client = boto3.client("ec2", region_name=chosen.region, config=config)
        ssm: SSMClient = boto3.client("ssm", region_name=chosen.region, config=config)
        return bake(chosen, settings, given.requirements, given.limit_minutes, ec2, ssm, time, _say)
    except (Rejected, BadSettings) as problem:
        print(problem, file=sys.stderr)
        return 2
    except (Failed, ClientError, BotoCoreError) as problem:
        print(f"No image was made: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted: no image was made, or it is not finished", file=sys.stderr)
        return 130


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
