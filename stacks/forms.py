"""Defines settings that are texts: one object holds a pattern and the words that say what it allows, so that neither is missing."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Network
from typing import Annotated, Any

from aws_cdk import region_info
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from contract import names, tag_forms
from contract.campaigns import NAME_PATTERN
from contract.images import ARGUMENT, DIGEST, PLATFORMS, REGISTRY, REPOSITORY, TAG, ContainerImage
from contract.request_rules import PRESET_PATTERN, PRESET_WORDS

PARTITIONS = ("aws", "aws-cn", "aws-us-gov")
"""Partitions where a deployment may live. The sovereign and the isolated ones are untested."""
PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
"""The private ranges of RFC 1918 and RFC 6598, which no internet address lies in. A VPC takes both."""
DOCKERS = IPv4Network("172.17.0.0/16")
"""The bridge network that Docker makes on every machine: a node would look for peers with such addresses on the bridge."""
LARGEST, SMALLEST = 16, 24
"""Prefix lengths of a network: the largest VPC that AWS takes, and the smallest network, with 59 nodes a zone."""


def nothing(text: str) -> str:  # noqa: ARG001
    """Objects to nothing that the pattern allows."""
    return ""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a text. When a value is wrong, a person reads `words`, and `objection` where it applies."""

    pattern: str
    words: str
    objection: Callable[[str], str] = nothing
    """Says what else is wrong with a text; empty where nothing is, or where `words` say it."""
    longest: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        assert source is str, f"{source} is not a str"
        return core_schema.no_info_wrap_validator_function(
            self._checked, core_schema.str_schema(pattern=self.pattern, max_length=self.longest, strict=True)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        # Editors show patternErrorMessage in the place of the pattern.
        return {**handler(schema), "patternErrorMessage": self.words}

    def _checked(self, value: Any, fits: Callable[[Any], str]) -> str:
        try:
            text = fits(value)
        except ValidationError:
            objection = self.objection(value) if isinstance(value, str) else ""
        else:
            if not (objection := self.objection(text)):
                return text
        raise PydanticCustomError("form", "{allowed}", {"allowed": self.words, "objection": objection})


@cache
def known_regions() -> frozenset[str]:
    """Lists the regions in the CDK's own table, without calling AWS."""
    return frozenset(region_info.Fact.regions)


@cache
def partition(region: str) -> str:
    """Returns the partition of a known region."""
    return region_info.RegionInfo.get(region).partition or ""


def _no_region(name: str) -> str:
    if name not in known_regions():
        close = difflib.get_close_matches(name, sorted(known_regions()), n=1)
        return f"there is no such region{f'; did you mean {close[0]}?' if close else ''}"
    if partition(name) not in PARTITIONS:
        return f"it belongs to the partition {partition(name)}"
    return ""


def _no_network(text: str) -> str:
    try:
        network = IPv4Network(text, strict=False)
    except ValueError:
        return "it is not an IPv4 network"
    if "/" not in text:
        return "it has no prefix length"
    if text != str(network):
        return f"it has host bits; the network is {network}"
    if not any(network.subnet_of(one) for one in PRIVATE):
        return "it is public"
    if network.overlaps(DOCKERS):
        return f"{DOCKERS} is Docker's own network on the nodes"
    if not LARGEST <= network.prefixlen <= SMALLEST:
        return f"its prefix length is {network.prefixlen}"
    return ""


def _no_base(text: str) -> str:
    try:
        image = ContainerImage.parse(text)
    except ValueError as problem:
        return f"it {problem}"
    return "it lies in a private registry" if image.account else ""


Deployment = Annotated[
    str,
    Form(
        r"^[a-z](-?[a-z0-9]){1,19}$",
        "2 to 20 lower-case letters, digits and single hyphens, a letter first",
        longest=20,
    ),
]
Region = Annotated[
    str,
    Form(
        f"^{names.REGION_PATTERN.pattern}$",
        f"the name of a region of AWS that this release of the CDK knows, in {', '.join(PARTITIONS[:-1])} or {PARTITIONS[-1]}, "
        "such as eu-central-1",
        _no_region,
    ),
]
Network = Annotated[
    str,
    Form(
        r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$",
        f"a private IPv4 network with a prefix length of {LARGEST} to {SMALLEST}, such as 10.70.0.0/16, inside "
        f"{', '.join(map(str, PRIVATE[:-1]))} or {PRIVATE[-1]}, but for {DOCKERS}",
        _no_network,
    ),
]
Bucket = Annotated[str, Form(f"^{names.BUCKET_PATTERN.pattern}$", "the name of a bucket")]
MachineImage = Annotated[
    str,
    Form(r"^(ami-[0-9a-f]{8,17}|/[A-Za-z0-9_./-]+)$", "an AMI id (ami-...) or the name of an SSM parameter (/...)"),
]
InstanceTypes = Annotated[str, Form(r"^[a-z0-9*][a-z0-9*.-]*$", "an instance type, * for any letters, such as g5.*")]
Zone = Annotated[
    str,
    Form(
        f"^{names.REGION_PATTERN.pattern}[a-z]$",
        "the name of an availability zone, such as eu-central-1a (no local zone, no zone id)",
    ),
]
Vpc = Annotated[
    str, Form(r"^(vpc-[0-9a-f]{8,17})?$", "the id of a VPC, such as vpc-0123456789abcdef0; empty for none", longest=21)
]
Subnet = Annotated[
    str, Form(r"^subnet-[0-9a-f]{8,17}$", "the id of a subnet, such as subnet-0123456789abcdef0", longest=24)
]
KeyArn = Annotated[
    str,
    Form(
        rf"^(arn:aws(-cn|-us-gov)?:kms:{names.REGION_PATTERN.pattern}:[0-9]{{12}}:key/[A-Za-z0-9-]{{1,64}})?$",
        "the ARN of a key of KMS, not of its alias, such as arn:aws:kms:eu-central-1:111122223333:key/"
        "12345678-1234-1234-1234-123456789012; empty for none",
        longest=128,
    ),
]
TagKey = Annotated[
    str,
    Form(
        f"^{tag_forms.KEY_PATTERN.pattern}$", tag_forms.KEY_WORDS, tag_forms.object_to_key, longest=tag_forms.MOST_KEY
    ),
]
TagValue = Annotated[
    str,
    Form(
        rf"^[^\x00-\x1f]{{1,{tag_forms.MOST_VALUE}}}$",
        tag_forms.VALUE_WORDS,
        tag_forms.object_to_value,
        longest=tag_forms.MOST_VALUE,
    ),
]
Repository = Annotated[
    str,
    Form(
        r"^[a-z](-?[a-z0-9]){1,39}$",
        "2 to 40 lower-case letters, digits and single hyphens, a letter first",
        longest=40,
    ),
]
Account = Annotated[str, Form(r"^[0-9]{12}$", "the twelve digits of an account, in quotes")]
ImageOwner = Annotated[
    str, Form(r"^([0-9]{12}|aws-marketplace)$", "the twelve digits of an account, in quotes, or aws-marketplace")
]
JobRoleName = Annotated[
    str,
    Form(
        f"^{names.JOB_ROLE_PATTERN.pattern}$",
        "2 to 20 lower-case letters, digits and single hyphens, a letter first",
        longest=20,
    ),
]
MachineImageName = Annotated[
    str,
    Form(
        f"^{names.MACHINE_IMAGE_PATTERN.pattern}$",
        "2 to 40 lower-case letters, digits and single hyphens, a letter first",
        longest=40,
    ),
]
RoleArn = Annotated[
    str,
    Form(
        r"^arn:aws(-cn|-us-gov)?:iam::[0-9]{12}:role/([A-Za-z0-9_+=,.@-]+/)*[A-Za-z0-9_+=,.@-]{1,64}$",
        "the ARN of a role, of up to 128 characters, such as arn:aws:iam::111122223333:role/datasets",
        longest=128,
    ),
]
GitHost = Annotated[
    str,
    Form(
        r"^[a-z0-9-]+(\.[a-z0-9-]+)+$",
        "the name of a host that serves git over https, such as github.com, without a port",
        longest=60,
    ),
]
SecretName = Annotated[
    str,
    Form(
        r"^[A-Za-z0-9/_+=.@-]*$",
        "the name of a secret of the home region, of up to 60 characters, not its ARN; empty for none",
        longest=60,
    ),
]
Organization = Annotated[str, Form(r"^o-[a-z0-9]{10,32}$", "the id of an organization, such as o-a1b2c3d4e5")]
ClusterName = Annotated[
    str,
    Form(r"^([A-Za-z0-9][A-Za-z0-9_-]{0,99})?$", "new, the name of a cluster of EKS in the home region, or nothing"),
]
ManifestFile = Annotated[
    str,
    Form(r"^([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?$", "a path from the folder of cdk.json on"),
]
Digest = Annotated[str, Form(r"^[0-9a-f]{64}$", "the SHA-256 of a file, 64 small hexadecimal digits")]
BaseImage = Annotated[
    str,
    Form(
        rf"^({REGISTRY.pattern})/({REPOSITORY.pattern})(:{TAG.pattern})?(@{DIGEST.pattern})?$",
        "an image of a public registry with its tag or its digest, such as public.ecr.aws/docker/library/python:3.13-slim-bookworm",
        _no_base,
    ),
]
TrainingImage = Annotated[
    str,
    Form(
        r"^[!-~]{0,255}$",
        "repository:tag of the deployment or the whole address of an image, up to 255 characters without spaces; empty for none",
    ),
]
TrainingType = Annotated[
    str,
    Form(r"^(ml\.[a-z0-9-]+\.[a-z0-9-]+)?$", "an instance type of SageMaker, such as ml.g5.xlarge; empty for none"),
]
StarterName = Annotated[
    str,
    Form(
        f"^{NAME_PATTERN.pattern}$", "2 to 40 lower-case letters, digits and single hyphens, a letter first", longest=40
    ),
]
PresetName = Annotated[str, Form(f"^{PRESET_PATTERN.pattern}$", PRESET_WORDS, longest=40)]
KeyPart = Annotated[
    str,
    Form(
        # What keys that start a campaign may have (contract.campaigns.KEY_PATTERN), without the star, which a rule reads as anything.
        r"^[A-Za-z0-9!_.()/=+@:, -]+$",
        "1 to 500 letters, digits, spaces and ! _ . ( ) / = + @ : , -",
        longest=500,
    ),
]
PageAddress = Annotated[
    str,
    Form(
        r"^(https://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~%/?=&+-]*)?)?$",
        "an address that begins with https:// and has no #, such as https://wiki.example.com/runbook; empty for none",
        longest=300,
    ),
]
GitAddress = Annotated[
    str,
    Form(
        r"^https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9_~][A-Za-z0-9._~-]*)+$",
        "https://HOST/OWNER/REPOSITORY.git, without a user, a port and a query",
        longest=300,
    ),
]
Branch = Annotated[
    str,
    Form(
        r"^[A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_][A-Za-z0-9_-]*)*$",
        "the name of a branch, of letters, digits, _, -, and single . and /",
        longest=200,
    ),
]
ArgumentName = Annotated[
    str,
    Form(f"^{ARGUMENT.pattern}$", "letters, digits and _, not beginning with a digit", longest=200),
]
ArgumentValue = Annotated[
    str, Form(r"^[^\x00-\x1f]*$", "up to 4,000 characters without control characters", longest=4000)
]
DeepLearningContainer = Annotated[
    str,
    Form(
        f"^({REPOSITORY.pattern}:{TAG.pattern})?$",
        "name and tag of a Deep Learning Container, such as pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2; empty for none",
        longest=400,
    ),
]
BuildPlatform = Annotated[str, Form(f"^({'|'.join(PLATFORMS)})$", " or ".join(PLATFORMS))]
