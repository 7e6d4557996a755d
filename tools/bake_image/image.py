"""The image: found where it was made before, and made of a stopped machine."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from contract import tags
from tools.bake_image.machine import LOOK_S, Failed, Machine, Say, Time
from tools.bake_image.plan import BAKED_TAG, BASE_TAG, DIGEST_TAG, REQUIREMENTS_TAG, Plan
from tools.bake_image.recipe import Rejected

if TYPE_CHECKING:
    from types_boto3_ec2.client import EC2Client


class Images:
    """Images of this account in one region."""

    def __init__(self, ec2: EC2Client, clock: Time, say: Say, region: str) -> None:
        self._ec2, self._clock, self._say, self._region = ec2, clock, say, region

    def find(self, name: str) -> str:
        """Returns the id of the image of that name; empty if there is none. Raises Rejected if it cannot be used."""
        found = self._ec2.describe_images(Owners=["self"], Filters=[{"Name": "name", "Values": [name]}])["Images"]
        if not found:
            return ""
        identity, state = found[0].get("ImageId", ""), found[0].get("State", "")
        if state not in {"available", "pending"}:
            raise Rejected(
                f"{identity} has the name {name} and is {state}; allowed: a name that is free. {self.removal(identity)}"
            )
        return identity

    def removal(self, identity: str) -> str:
        return f"To remove it: aws ec2 deregister-image --region {self._region} --delete-associated-snapshots --image-id {identity}"

    def make(self, machine: Machine, plan: Plan) -> str:
        """Makes the image of a machine that is stopped, and returns its id. Raises Failed with EC2's words."""
        now = datetime.fromtimestamp(self._clock.time(), timezone.utc)
        marks: Any = [
            {"Key": key, "Value": value}
            for key, value in {
                **plan.tags,
                tags.NAME: plan.name,
                BASE_TAG: plan.recipe.base,
                REQUIREMENTS_TAG: plan.recipe.requirements_digest,
                DIGEST_TAG: plan.recipe.digest,
                BAKED_TAG: f"{now:%Y-%m-%dT%H:%M:%SZ}",
            }.items()
        ]
        try:
            answer = self._ec2.create_image(
                InstanceId=machine.id,
                Name=plan.name,
                Description=f"Trainyard: {plan.recipe.base} with requirements {plan.recipe.requirements_digest[:16]}",
                TagSpecifications=[
                    {"ResourceType": "image", "Tags": marks},
                    {"ResourceType": "snapshot", "Tags": marks},
                ],
            )
        except ClientError as problem:
            raise Failed(f"EC2 made no image of {machine.id}: {problem}") from None
        self._say(f"{answer['ImageId']} is being made of {machine.id}")
        return answer["ImageId"]

    def wait_until_available(self, identity: str, limit_s: float) -> None:
        """Raises Failed if the image fails, or takes longer than `limit_s` seconds."""
        began = self._clock.time()
        while True:
            found = self._ec2.describe_images(Filters=[{"Name": "image-id", "Values": [identity]}], Owners=["self"])[
                "Images"
            ]
            state = found[0].get("State", "") if found else "not visible yet"
            past = self._clock.time() - began
            if state == "available":
                return
            self._say(f"{past / 60:5.1f} min  {identity} is {state}")
            if state not in {"pending", "not visible yet"}:
                why = found[0].get("StateReason", {}).get("Message", "EC2 gives no reason")
                raise Failed(f"{identity} is {state}: {why}. {self.removal(identity)}")
            if past >= limit_s:
                raise Failed(f"{identity} is still {state} after {limit_s / 60:.0f} minutes. {self.removal(identity)}")
            self._clock.sleep(LOOK_S)
