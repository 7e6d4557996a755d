"""What the functions and the nodes may do: one named statement a right, each as narrow as IAM lets it be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from contract import keys, names, tags

PUBLIC_PARAMETERS = "/aws/service/"
"""SSM parameters that AWS publishes; they belong to no account."""
PUBLIC_IMAGES = f"{PUBLIC_PARAMETERS}deeplearning/*"
READ = ("s3:GetObject", "s3:GetObjectVersion")


def statement(name: str, actions: Sequence[str], resources: Sequence[str], **conditions: object) -> iam.PolicyStatement:
    """An Allow whose name a person reads in the console; conditions by operator: `StringEquals={...}`."""
    return iam.PolicyStatement(
        sid=name, actions=list(actions), resources=list(resources), conditions=dict(conditions) or None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Statements for one deployment with these training regions."""

    deployment: str
    home_region: str
    regions: tuple[str, ...]

    @property
    def home_bucket(self) -> str:
        return names.home_bucket(self.deployment, cdk.Aws.ACCOUNT_ID, self.home_region)

    @property
    def bytes_buckets(self) -> tuple[str, ...]:
        return tuple(names.bytes_bucket(self.deployment, cdk.Aws.ACCOUNT_ID, region) for region in self.regions)

    # S3

    def home(self, name: str, actions: Sequence[str], *patterns: str) -> iam.PolicyStatement:
        """`actions` on objects of the home bucket whose keys fit a pattern."""
        return statement(name, actions, [_objects(self.home_bucket, pattern) for pattern in patterns])

    def list_home(self) -> iam.PolicyStatement:
        """Also what makes S3 say "no such key" and not "forbidden" of an object that is not there."""
        return statement("ListHome", ["s3:ListBucket"], [_bucket(self.home_bucket)])

    def bytes(self, name: str, actions: Sequence[str], *patterns: str) -> iam.PolicyStatement:
        """`actions` on objects of every region's bucket of bytes."""
        wanted = [_objects(bucket, pattern) for bucket in self.bytes_buckets for pattern in patterns]
        return statement(name, actions, wanted)

    def list_bytes(self) -> iam.PolicyStatement:
        return statement("ListBytes", ["s3:ListBucket"], [_bucket(bucket) for bucket in self.bytes_buckets])

    def data(self, buckets: Sequence[str]) -> list[iam.PolicyStatement]:
        """Reads the buckets that the settings name; nothing where they name none."""
        if not buckets:
            return []
        return [
            statement("ReadData", READ, [_objects(bucket, "*") for bucket in buckets]),
            statement("ListData", ["s3:ListBucket"], [_bucket(bucket) for bucket in buckets]),
        ]

    # EC2

    def look_at(self, name: str, *actions: str) -> iam.PolicyStatement:
        """Describe calls, which know no resources; in our regions only."""
        allowed = sorted({self.home_region, *self.regions})
        return statement(name, actions, ["*"], StringEquals={"aws:RequestedRegion": allowed})

    def launch(self) -> list[iam.PolicyStatement]:
        """RunInstances is authorised for every resource of the request: one type that is missing here and all launches fail."""
        return [
            statement(
                "LaunchWhatCarriesOurTag",
                ["ec2:RunInstances"],
                self._ec2("instance", "volume", "network-interface"),
                StringEquals={f"aws:RequestTag/{tags.DEPLOYMENT}": self.deployment},
            ),
            statement(
                "LaunchIntoWhatIsOurs",
                ["ec2:RunInstances"],
                self._ec2("subnet", "security-group", "launch-template", "placement-group"),
                StringEquals={f"aws:ResourceTag/{tags.DEPLOYMENT}": self.deployment},
            ),
            statement(
                "LaunchFromImages",
                ["ec2:RunInstances"],
                # Images and their snapshots may be anybody's: their ARNs have no account. Spot requests carry no tag of ours.
                [
                    *(
                        _arn("ec2", region, "", f"{kind}/*")
                        for region in self.regions
                        for kind in ("image", "snapshot")
                    ),
                    *self._ec2("spot-instances-request"),
                ],
            ),
            statement(
                "TagWhileLaunching",
                ["ec2:CreateTags"],
                self._ec2("instance", "volume", "network-interface"),
                StringEquals={
                    "ec2:CreateAction": "RunInstances",
                    f"aws:RequestTag/{tags.DEPLOYMENT}": self.deployment,
                },
            ),
            statement(
                "NameTheMaster",
                ["ec2:CreateTags"],
                self._ec2("instance"),
                # Without the Null, ForAllValues is true of a request that has no keys.
                StringEquals={f"aws:ResourceTag/{tags.DEPLOYMENT}": self.deployment},
                **{"ForAllValues:StringEquals": {"aws:TagKeys": list(tags.AFTER_LAUNCH)}},
                Null={"aws:TagKeys": "false"},
            ),
        ]

    def terminate(self) -> iam.PolicyStatement:
        return statement(
            "TerminateWhatIsOurs",
            ["ec2:TerminateInstances"],
            self._ec2("instance"),
            StringEquals={f"aws:ResourceTag/{tags.DEPLOYMENT}": self.deployment},
        )

    def pass_to_ec2(self, role_arn: str) -> iam.PolicyStatement:
        service = {"iam:PassedToService": "ec2.amazonaws.com"}
        return statement("PassTheNodeRole", ["iam:PassRole"], [role_arn], StringEquals=service)

    # Everything else

    def parameters(self, images: Sequence[str]) -> iam.PolicyStatement:
        """The regions' descriptions of themselves, AWS's deep-learning images, and the parameters among `images`."""
        own = [image for image in images if image.startswith("/") and not image.startswith(PUBLIC_PARAMETERS)]
        public = {PUBLIC_IMAGES, *(image for image in images if image.startswith(PUBLIC_PARAMETERS))}
        account = [*(names.region_parameter(self.deployment, region) for region in self.regions), *sorted(set(own))]
        return statement(
            "ReadParameters",
            ["ssm:GetParameter"],
            [
                *(
                    _arn("ssm", region, cdk.Aws.ACCOUNT_ID, f"parameter{one}")
                    for region in self.regions
                    for one in account
                ),
                *(_arn("ssm", region, "", f"parameter{one}") for region in self.regions for one in sorted(public)),
            ],
        )

    def secrets(self, action: str) -> iam.PolicyStatement:
        """`action` on what stands under the deployment's own path."""
        path = f"secret:{names.secret_prefix(self.deployment)}*"
        regions = sorted({self.home_region, *self.regions})
        return statement(
            "Secrets", [action], [_arn("secretsmanager", one, cdk.Aws.ACCOUNT_ID, path) for one in regions]
        )

    def answer_train(self) -> iam.PolicyStatement:
        """Answers of task tokens. The reference lists no resource for them; IAM asks for the machine's ARN all the same."""
        machine = _arn("states", self.home_region, cdk.Aws.ACCOUNT_ID, f"stateMachine:{names.machine(self.deployment)}")
        actions = ["states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"]
        return statement("AnswerTrain", actions, [machine])

    def node(self, *, agent: str, log_group_arn: str, data_buckets: Sequence[str]) -> list[iam.PolicyStatement]:
        """All that a node may do; `agent` is the ARN of the agent's archive. No EC2 and no states right."""
        folders = [f"{keys.JOBS}*/{folder}/*" for folder in keys.BYTES_FOLDERS]
        jobs = {"s3:prefix": f"{keys.JOBS}*"}
        return [
            statement("FetchTheAgent", ["s3:GetObject"], [agent]),
            self.home("ReadJobs", ["s3:GetObject"], f"{keys.JOBS}*"),
            # IfExists: S3 asks for this right, without a prefix, before it says of a missing object that it is missing.
            statement("ListJobs", ["s3:ListBucket"], [_bucket(self.home_bucket)], StringLikeIfExists=jobs),
            self.home("Report", ["s3:PutObject"], keys.ANY_REPORT, keys.ANY_ORDER),
            self.bytes("CommitAndRestore", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], *folders),
            self.list_bytes(),
            *self.data(data_buckets),
            statement("WriteTheLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [log_group_arn]),
            self.secrets("secretsmanager:GetSecretValue"),
        ]

    def _ec2(self, *kinds: str) -> list[str]:
        return [_arn("ec2", region, cdk.Aws.ACCOUNT_ID, f"{kind}/*") for region in self.regions for kind in kinds]


def _arn(service: str, region: str, account: str, resource: str) -> str:
    return f"arn:{cdk.Aws.PARTITION}:{service}:{region}:{account}:{resource}"


def _bucket(name: str) -> str:
    return f"arn:{cdk.Aws.PARTITION}:s3:::{name}"


def _objects(bucket: str, pattern: str) -> str:
    return f"{_bucket(bucket)}/{pattern}"
