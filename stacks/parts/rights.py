"""Rights of the functions and the nodes: one named statement per right, each as narrow as IAM allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import aws_cdk as cdk

from contract import names, tags
from stacks.parts.right import Right

PUBLIC_PARAMETERS = "/aws/service/"
"""SSM parameters that AWS publishes; they belong to no account."""
READ = ("s3:GetObject", "s3:GetObjectVersion")
POLLING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
PRICE_LIST = "us-east-1"
"""The Price List has endpoints in few regions; each of them answers for all regions."""
UNPROTECTED = {f"aws:ResourceTag/{tags.PROTECTED}": "true"}
"""For the operator Null: the resource lacks this tag. IAM itself then denies ending what a person protected after the function looked."""
OF_THIS_ACCOUNT = {"StringEquals": {"aws:ResourceAccount": cdk.Aws.ACCOUNT_ID}}
"""Needed because another account's bucket may have a name that fits our pattern, or our own once ours is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Statements for one deployment.

    ARNs leave the region open; a condition names the regions or, for buckets, the account, as their names contain the region. Statements
    with each region's ARNs would be too long for a role after a dozen regions.
    """

    deployment: str
    home_region: str
    regions: tuple[str, ...]
    """Regions in which jobs run."""

    @property
    def home_bucket(self) -> str:
        return names.home_bucket(self.deployment, cdk.Aws.ACCOUNT_ID, self.home_region)

    @property
    def bytes_buckets(self) -> str:
        """Pattern of the names of every region's bucket of bytes."""
        return names.bytes_bucket(self.deployment, cdk.Aws.ACCOUNT_ID, "*")

    @property
    def train_machine(self) -> str:
        """ARN of the Train machine."""
        return self.machine(names.machine(self.deployment))

    @property
    def job_role(self) -> str:
        """ARN of the role whose sessions nodes get for their job."""
        return f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}:role/{names.job_role(self.deployment, self.home_region)}"

    # S3

    def home(self, name: str, actions: Sequence[str], *patterns: str) -> Right:
        """Allows `actions` on objects of the home bucket whose keys fit a pattern."""
        reason = "Jobs, attempts and uploads come and go: what is fixed in a key says which kind of document it is."
        return Right(
            name, actions, [objects_arn(self.home_bucket, pattern) for pattern in patterns], reason, OF_THIS_ACCOUNT
        )

    def list_home(self) -> Right:
        """Lists the home bucket; with this right S3 answers "no such key", not "forbidden", for an object that does not exist."""
        return Right("ListHome", ["s3:ListBucket"], [bucket_arn(self.home_bucket)], conditions=OF_THIS_ACCOUNT)

    def bytes(self, name: str, actions: Sequence[str], *patterns: str) -> Right:
        """Allows `actions` on objects of every region's bucket of bytes."""
        wanted = [objects_arn(self.bytes_buckets, pattern) for pattern in patterns]
        reason = "There is a bucket a region; jobs and their files come and go, and the folder says which kind of file it is."
        return Right(name, actions, wanted, reason, OF_THIS_ACCOUNT)

    def list_bytes(self) -> Right:
        reason = "There is a bucket a region, of this account."
        return Right("ListBytes", ["s3:ListBucket"], [bucket_arn(self.bytes_buckets)], reason, OF_THIS_ACCOUNT)

    def empty(self) -> list[Right]:
        """Deletes every version of every object in the deployment's own buckets."""
        buckets = [self.home_bucket, self.bytes_buckets]
        whole, everything = [bucket_arn(one) for one in buckets], [objects_arn(one, "*") for one in buckets]
        reason = "The settings say that no data is kept: a bucket goes only once nothing at all is in it."
        listing, deleting = ["s3:ListBucket", "s3:ListBucketVersions"], ["s3:DeleteObject", "s3:DeleteObjectVersion"]
        return [
            Right("ListVersions", listing, whole, reason, OF_THIS_ACCOUNT),
            Right("EmptyBuckets", deleting, everything, reason, OF_THIS_ACCOUNT),
        ]

    def data(self, buckets: Sequence[str]) -> list[Right]:
        """Reads the buckets that the settings name; returns no right where they name none."""
        if not buckets:
            return []
        reason = "The settings give these buckets to jobs, with everything in them."
        return [
            Right("ReadData", READ, [objects_arn(bucket, "*") for bucket in buckets], reason),
            Right("ListData", ["s3:ListBucket"], [bucket_arn(bucket) for bucket in buckets]),
        ]

    # EC2

    def look_at(self, name: str, *actions: str) -> Right:
        """Allows Describe calls, which IAM cannot limit to resources, in our regions only."""
        reason = "Describe calls support no resource-level permissions; the condition keeps them to our regions."
        return Right(name, actions, ["*"], reason, self._here())

    def look_everywhere(self, *actions: str) -> Right:
        """Allows Describe calls in every region: instances may run in a region that the settings no longer name."""
        reason = "Describe calls support no resource-level permissions, and what was launched in a region outlives the region's settings."
        return Right("DescribeInEveryRegion", actions, ["*"], reason)

    def pass_to_ec2(self, role_arn: str) -> Right:
        service = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
        return Right("PassTheNodeRole", ["iam:PassRole"], [role_arn], conditions=service)

    # Step Functions

    def list_executions(self) -> Right:
        return Right("ListExecutions", ["states:ListExecutions"], [self.train_machine])

    def executions(self, name: str, *actions: str) -> Right:
        """Allows `actions` on executions of the Train machine."""
        every = arn_of("states", self.home_region, cdk.Aws.ACCOUNT_ID, f"execution:{names.machine(self.deployment)}:*")
        return Right(name, actions, [every], "Executions come and go; the machine is ours.")

    def see_ends(self) -> list[Right]:
        """Allows to see which executions of the Train machine run, and how one ended."""
        return [self.list_executions(), self.executions("DescribeExecutions", "states:DescribeExecution")]

    def start_drain(self) -> Right:
        return Right("StartTheDrain", ["states:StartExecution"], [self.machine(names.drain_machine(self.deployment))])

    def build_own_images(self) -> list[Right]:
        """Allows to start and follow builds of the platform's own images, and to start the machine that waits for them during a deploy."""
        build = names.platform_machine(self.deployment)
        every = arn_of("states", self.home_region, cdk.Aws.ACCOUNT_ID, f"execution:{build}:*")
        started = [self.machine(build), self.machine(names.image_machine(self.deployment))]
        return [
            Right("StartBuilds", ["states:StartExecution"], started),
            Right(
                "DescribeBuildExecutions",
                ["states:DescribeExecution"],
                [every],
                "Executions come and go; the machine is ours.",
            ),
        ]

    def answer_train(self) -> Right:
        """Allows to answer task tokens. The reference lists no resource for these calls; IAM asks for the machine's ARN all the same."""
        actions = ["states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"]
        return Right("SendTaskResults", actions, [self.train_machine])

    def machine(self, name: str) -> str:
        """ARN of a state machine of the home region."""
        return arn_of("states", self.home_region, cdk.Aws.ACCOUNT_ID, f"stateMachine:{name}")

    # Messages

    def work_through(self, queue_arn: str, *, sends: bool = True) -> Right:
        """Allows to read a queue, delay a message and, with `sends`, send one more; Lambda makes the first three calls, with the
        function's role."""
        more = ["sqs:SendMessage"] if sends else []
        return Right("ProcessTheQueue", [*POLLING, "sqs:ChangeMessageVisibility", *more], [queue_arn])

    def read_queue(self, name: str, queue_arn: str) -> Right:
        """Allows to read a queue; Lambda makes these calls, with the function's role."""
        return Right(name, POLLING, [queue_arn])

    def leave_letters(self, queue_arn: str) -> Right:
        return Right("SendToTheDeadLetterQueue", ["sqs:SendMessage"], [queue_arn])

    def publish(self, topic_arn: str, key_arn: str) -> list[Right]:
        """Allows to publish; SNS encrypts a message with the publisher's right on the key."""
        through = {"StringEquals": {"kms:ViaService": f"sns.{self.home_region}.amazonaws.com"}}
        return [
            Right("PublishMessages", ["sns:Publish"], [topic_arn]),
            Right("UseTheTopicsKey", ["kms:GenerateDataKey", "kms:Decrypt"], [key_arn], conditions=through),
        ]

    def figures(self) -> list[Right]:
        """Allows to read what the reaper's summary quotes: its own metrics of the week, and the price of an instance hour."""
        metrics = "Metrics are not resources, and there is no condition on a namespace; they are numbers."
        return [
            Right("ReadMetrics", ["cloudwatch:GetMetricData"], ["*"], metrics, within(self.home_region)),
            self.prices(),
        ]

    def prices(self) -> Right:
        """Allows to read the Price List, for all regions and services."""
        reason = "The public price list supports no resource-level permissions; it answers in one region."
        return Right("ReadPrices", ["pricing:GetProducts"], ["*"], reason, within(PRICE_LIST))

    # Everything else

    def parameters(self, images: Sequence[str]) -> Right:
        """Allows to read the regions' descriptions, and those of `images` that are parameters."""
        own = {image for image in images if image.startswith("/") and not image.startswith(PUBLIC_PARAMETERS)}
        public = {image for image in images if image.startswith(PUBLIC_PARAMETERS)}
        owned = [(cdk.Aws.ACCOUNT_ID, one) for one in sorted(own)] + [("", one) for one in sorted(public)]
        wanted = [self._descriptions, *(arn_of("ssm", "*", owner, f"parameter{one}") for owner, one in owned)]
        reason = "Each region has parameters of these names; the condition keeps to our regions."
        return Right("ReadParameters", ["ssm:GetParameter"], wanted, reason, self._here())

    def descriptions(self) -> Right:
        """Allows to read descriptions in every region: a region that left the settings may still have its stack."""
        reason = "A region's stack outlives its settings; the path is the deployment's own."
        return Right("ReadRegionParameters", ["ssm:GetParameter"], [self._descriptions], reason)

    def own_stack(self, stack: str) -> Right:
        """Allows to read the status of a stack of the home region, by its name."""
        arn = arn_of("cloudformation", self.home_region, cdk.Aws.ACCOUNT_ID, f"stack/{stack}/*")
        reason = "A stack's id changes whenever it is created again; its name is the deployment's."
        return Right("DescribeTheStack", ["cloudformation:DescribeStacks"], [arn], reason)

    @property
    def secret_arns(self) -> str:
        """Pattern of the ARNs of the secrets under the deployment's own path."""
        return arn_of("secretsmanager", "*", cdk.Aws.ACCOUNT_ID, f"secret:{names.secret_prefix(self.deployment)}*")

    def secrets_and_groups(self) -> Right:
        """Allows to see which secrets of jobs exist, and which reservations a resource group of the account holds. One statement: a list
        of many regions is long, and a role takes so many characters."""
        reason = (
            "What people put under the deployment's own path is what jobs may have, and of a group's reservations only those with our tag "
            "are used; the condition keeps to our regions."
        )
        groups = arn_of("resource-groups", "*", cdk.Aws.ACCOUNT_ID, "group/*")
        actions = ["secretsmanager:DescribeSecret", "resource-groups:ListGroupResources"]
        return Right("DescribeSecretsAndGroups", actions, [self.secret_arns, groups], reason, self._here())

    @property
    def _descriptions(self) -> str:
        return arn_of("ssm", "*", cdk.Aws.ACCOUNT_ID, f"parameter{names.region_parameter(self.deployment, '*')}")

    def _here(self, also: Mapping[str, object] | None = None) -> dict[str, dict[str, object]]:
        """Conditions that limit a request to our regions, and to `also`."""
        return {"StringEquals": {**(also or {}), **within(*sorted({self.home_region, *self.regions}))["StringEquals"]}}


def arn_of(service: str, region: str, account: str, resource: str) -> str:
    return f"arn:{cdk.Aws.PARTITION}:{service}:{region}:{account}:{resource}"


def within(*regions: str) -> dict[str, dict[str, object]]:
    return {"StringEquals": {"aws:RequestedRegion": list(regions)}}


def below(listing: Right, *prefixes: str) -> Right:
    """Returns the right to list a bucket, below these prefixes only. S3 then answers "forbidden" for an object that does not exist."""
    operators = {"StringLike": {"s3:prefix": list(prefixes)}}
    return replace(listing, conditions={**listing.conditions, **operators})


def bucket_arn(name: str) -> str:
    return f"arn:{cdk.Aws.PARTITION}:s3:::{name}"


def objects_arn(bucket: str, pattern: str) -> str:
    return f"{bucket_arn(bucket)}/{pattern}"
