"""The one instance that an image is made of: started, watched, and ended whatever happens."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from contract import tags
from contract.aws_errors import code_of
from tools.bake_image.plan import BASE_TAG, DIGEST_TAG, Plan
from tools.bake_image.recipe import MARK

if TYPE_CHECKING:
    from types_boto3_ec2.client import EC2Client

LOOK_S = 15.0
CONSOLE_PATIENCE_S = 300.0
"""How long after the stop the console may take to show the last line."""
END_PATIENCE_S = 300.0
MADE: tuple[Literal["instance", "volume", "network-interface"], ...] = ("instance", "volume", "network-interface")
"""What the launch makes and tags."""
OWN_POWER_OFF = "Client.InstanceInitiatedShutdown"
"""EC2's reason for a stop that the machine itself began. A stop by a person or by AWS has another."""
UNCLEAR = frozenset({"InternalError", "InternalFailure", "RequestTimeout", "ServiceUnavailable", "Unavailable"})
"""Errors after which the launch may have happened all the same."""


class Failed(Exception):
    """No image was made; the message says why."""


class Time(Protocol):
    """The part of the module `time` that is used."""

    def time(self) -> float: ...
    def sleep(self, seconds: float, /) -> None: ...


Say = Callable[[str], None]


class Machine:
    """An instance that this process started. It knows no other id than the one in the answer to its own RunInstances."""

    def __init__(self, ec2: EC2Client, plan: Plan, clock: Time, say: Say, region: str) -> None:
        self._ec2, self._plan, self._clock, self._say, self._region = ec2, plan, clock, say, region
        self._token = secrets.token_hex(16)
        self.id = ""
        self.left = False
        """It could not be ended."""

    @contextmanager
    def started(self, user_data: bytes) -> Iterator[Machine]:
        """Starts it, and ends it when the block is left, also by an interrupt during the call that starts it."""
        try:
            self._start(user_data)
            yield self
        finally:
            with _uninterrupted():
                self.end()

    def _start(self, user_data: bytes) -> None:
        try:
            self.id = self._run(user_data)
        except ClientError as problem:
            if code_of(problem) in UNCLEAR:
                self._find(user_data)
            raise Failed(self._refused(problem)) from None
        except BaseException:
            # The answer was lost, or never waited for. The same request with the same token returns the instance of the first one.
            self._find(user_data)
            raise

    def _find(self, user_data: bytes) -> None:
        with _uninterrupted():
            try:
                self.id = self._run(user_data)
            except ClientError as problem:
                if code_of(problem) in UNCLEAR:
                    self._say_lost(problem)
            except BotoCoreError as problem:
                self._say_lost(problem)

    def _say_lost(self, problem: Exception) -> None:
        self._say(
            f"It is unknown whether an instance was started ({problem}). If it was, it has the tag {DIGEST_TAG} = "
            f"{self._plan.recipe.digest}: aws ec2 describe-instances --region {self._region} "
            f"--filters Name=tag:{DIGEST_TAG},Values={self._plan.recipe.digest}"
        )

    def _run(self, user_data: bytes) -> str:
        plan = self._plan
        marks: Any = [
            {"Key": key, "Value": value}
            for key, value in {
                **plan.tags,
                tags.NAME: f"bakes {plan.name}",
                BASE_TAG: plan.recipe.base,
                DIGEST_TAG: plan.recipe.digest,
            }.items()
        ]
        # Named as in a launch of nodes, because some organizations refuse other disks; without a key the account's default decides.
        encrypted: Any = {"Encrypted": True, "KmsKeyId": plan.volume_key} if plan.volume_key else {}
        further = plan.further_devices if encrypted else ()
        kind: Any = plan.instance_type
        data: Any = user_data  # bytes, which botocore encodes
        answer = self._ec2.run_instances(
            ImageId=plan.recipe.base,
            InstanceType=kind,
            MinCount=1,
            MaxCount=1,
            ClientToken=self._token,
            UserData=data,
            InstanceInitiatedShutdownBehavior="stop",
            MetadataOptions={"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            NetworkInterfaces=[
                {
                    "DeviceIndex": 0,
                    "SubnetId": plan.subnet,
                    "Groups": [plan.security_group],
                    "AssociatePublicIpAddress": False,
                    "DeleteOnTermination": True,
                }
            ],
            BlockDeviceMappings=[
                {
                    "DeviceName": plan.root_device,
                    "Ebs": {
                        "VolumeSize": plan.volume_gb,
                        "VolumeType": "gp3",
                        "DeleteOnTermination": True,
                        **encrypted,
                    },
                },
                *({"DeviceName": device, "Ebs": {"DeleteOnTermination": True, **encrypted}} for device in further),
            ],
            TagSpecifications=[{"ResourceType": kind, "Tags": marks} for kind in MADE],
        )
        return answer["Instances"][0]["InstanceId"]

    def _refused(self, problem: ClientError) -> str:
        return (
            f"EC2 started no {self._plan.instance_type} in {self._plan.subnet}: {problem}. "
            "Try another --instance-type or --subnet, or later"
        )

    # While it installs

    def wait_until_baked(self, limit_s: float) -> None:
        """Returns when it has powered itself off and its console says that everything is installed. Raises Failed otherwise."""
        began, seen = self._clock.time(), ""
        while True:
            state, reason = self._state()
            past = self._clock.time() - began
            told = self._read_lines()
            self._say(
                f"{past / 60:5.1f} min  {self.id} is {state or 'not visible yet'}"
                + (f", {told[-1]}" if told and told[-1] != seen else "")
            )
            seen = told[-1] if told else seen
            self._raise_failure(told)
            if state in {"shutting-down", "terminated"}:
                raise Failed(f"{self.id} was ended while it installed ({reason or 'EC2 gives no reason'})")
            if state == "stopped":
                return self._check_end(reason)
            if past >= limit_s:
                raise Failed(f"{self.id} was still {state} after {limit_s / 60:.0f} minutes (--limit-minutes)")
            self._clock.sleep(LOOK_S)

    def _check_end(self, reason: str) -> None:
        """A stop alone proves nothing: a person, AWS and the machine's own timer stop it too."""
        if not reason.startswith(OWN_POWER_OFF):
            raise Failed(f"{self.id} was stopped, and not by itself ({reason or 'EC2 gives no reason'})")
        until = self._clock.time() + CONSOLE_PATIENCE_S
        while True:
            told = self._read_lines()
            self._raise_failure(told)
            if f"baked {self._plan.recipe.digest}" in told:
                return
            if self._clock.time() >= until:
                last = told[-1] if told else "nothing of ours"
                raise Failed(
                    f"{self.id} powered itself off, and its console does not say that it is done; the last line: {last}"
                )
            self._say(f"{self.id} is stopped; waits for its console")
            self._clock.sleep(LOOK_S)

    def _raise_failure(self, lines: list[str]) -> None:
        if any(line.startswith("failed:") for line in lines):
            raise Failed(f"{self.id} could not be prepared:\n" + "\n".join(lines[-16:]))

    def _state(self) -> tuple[str, str]:
        """Returns state and EC2's reason; empty while EC2 does not show it yet."""
        try:
            found = self._ec2.describe_instances(InstanceIds=[self.id])["Reservations"]
        except ClientError as problem:
            if code_of(problem) != "InvalidInstanceID.NotFound":
                raise
            return "", ""
        if not found:
            return "", ""
        one = found[0]["Instances"][0]
        why = one.get("StateReason", {})
        return one.get("State", {}).get("Name", ""), f"{why.get('Code', '')} {why.get('Message', '')}".strip()

    def _read_lines(self) -> list[str]:
        """Returns our lines of its console, without the mark. Types without Nitro show only what EC2 kept."""
        for latest in (True, False):
            try:
                shown = self._ec2.get_console_output(InstanceId=self.id, Latest=latest).get("Output", "")
            except ClientError as problem:
                if code_of(problem) not in {"UnsupportedOperation", "InvalidInstanceID.NotFound"}:
                    raise
                continue
            lines = [line.partition(MARK)[2].strip() for line in shown.splitlines() if MARK in line]
            if lines:
                return lines
        return []

    # The end

    def end(self) -> None:
        """Ends it, if it was started. Where EC2 refuses for five minutes it says what to do, and `left` is true."""
        if not self.id:
            return
        until = self._clock.time() + END_PATIENCE_S
        while True:
            try:
                self._ec2.terminate_instances(InstanceIds=[self.id])
            except (ClientError, BotoCoreError) as problem:
                # A new instance can be unknown for a second, so an unknown one is asked for again too.
                if self._clock.time() < until:
                    self._clock.sleep(LOOK_S)
                    continue
                by_hand = f"aws ec2 terminate-instances --region {self._region} --instance-ids {self.id}"
                self.left = True
                self._say(f"{self.id} COULD NOT BE ENDED and may cost money ({problem}). End it by hand: {by_hand}")
                return
            self._say(f"{self.id} is ended")
            return


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignores Ctrl-C, SIGTERM and a closed terminal meanwhile: a second Ctrl-C must not leave the instance behind."""

    def ignored(_number: int, _frame: FrameType | None) -> None:
        """Does nothing."""

    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {one: signal.signal(one, ignored) for one in names}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
