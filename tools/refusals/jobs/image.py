"""Refusals of a container's image, and of arguments for it."""

from __future__ import annotations

from typing import Any

from tools.refusals.jobs.table import CODE, LEAST, Row, Section

REGISTRY = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
CONTAINERS = "763104351884.dkr.ecr.eu-central-1.amazonaws.com"
PARTNER = "777788889999.dkr.ecr.eu-central-1.amazonaws.com"
MAY_BE = "repository and tag of an image, as in images:digits-1, or its whole address in a private ECR registry"
THERE = "repository and tag of an image that exists there"
TAGS = "tags of AWS's containers begin with version and device, as in 2.9-gpu; copy public images in (docs/guides/images.md)"
ABSENT = f"sha256:{'0' * 64}"
IN_IMAGE = ("code", "command")
"""Fields that a request with an image does not need."""


def _alone(what: str, image: str, *says: str, **more: Any) -> Row:
    """An image without code and command."""
    return Row(what, {"image": image, **more}, *says, without=IN_IMAGE)


IMAGE = Section(
    "image",
    MAY_BE,
    rows=(
        ("a number", 7, "7 is not a string"),
        ("empty", "", '"" does not begin with a repository name'),
        ("no tag", "images", "images has neither a tag nor a digest"),
        ("capital letters", "Images:v1", "Images:v1 does not begin with a repository name"),
        ("half a digest", "images@sha256:abc", "images@sha256:abc has a tag or a digest that is not valid"),
        ("a name of one letter", "x:1", "x:1 does not begin with a repository name"),
        ("an option of docker", "--privileged", "--privileged does not begin with a repository name"),
        (
            "a tag that does not exist",
            "images:gone",
            f"images:gone does not exist in eu-central-1 ({REGISTRY}/yard/images:gone); allowed: {THERE}",
        ),
        (
            "a name that is neither a repository nor a container of AWS's",
            "nothing:v1",
            f"nothing:v1 does not exist in eu-central-1 ({CONTAINERS}/nothing:v1); allowed: {THERE}; {TAGS}",
        ),
        (
            "a container that AWS does not have",
            "pytorch-training:2.11-gpu",
            f"pytorch-training:2.11-gpu does not exist in eu-central-1 ({CONTAINERS}/pytorch-training:2.11-gpu); allowed: {THERE}; {TAGS}",
        ),
        (
            "a digest that does not exist",
            f"images@{ABSENT}",
            f"images@{ABSENT} does not exist in eu-central-1 ({REGISTRY}/yard/images@{ABSENT}); allowed: {THERE}",
        ),
        (
            "a digest with a capital letter",
            f"images@{ABSENT[:-1]}A",
            f"images@{ABSENT[:-1]}A has a tag or a digest that is not valid",
        ),
        ("a digest of another kind", "images@md5:0", "images@md5:0 has a tag or a digest that is not valid"),
        (
            "one of Docker Hub by its whole address",
            "docker.io/library/python:3.12",
            "docker.io/library/python:3.12 is in a registry that nodes do not log in to; allowed: private ECR registries (the machine "
            'yard-build copies an image from elsewhere into the deployment\'s own: {"copy": "docker.io/library/python:3.12", "repository": '
            '"images", "tag": "3.12"}, docs/guides/images.md)',
        ),
        (
            "one of a public registry",
            "public.ecr.aws/docker/library/python:3.12",
            "public.ecr.aws/docker/library/python:3.12 is in a registry that nodes do not log in to; allowed: private ECR registries "
            "(the machine yard-build copies an image from elsewhere into the deployment's own: "
            '{"copy": "public.ecr.aws/docker/library/python:3.12", "repository": "images", "tag": "3.12"}, docs/guides/images.md)',
        ),
        (
            "one of the account that is not the deployment's",
            f"{REGISTRY}/other/images:v1",
            f"{REGISTRY}/other/images:v1 is not in a repository of yard; allowed: images",
        ),
        (
            "one of an account that is not in the settings",
            f"{REGISTRY.replace('123456789012', '999999999999')}/images:v1",
            f"{REGISTRY.replace('123456789012', '999999999999')}/images:v1 is in a registry of account 999999999999; allowed: "
            "registries of 123456789012, 763104351884, 777788889999 (copy_accounts in cdk.json)",
        ),
        (
            "one of a registry that denies access",
            f"{PARTNER}/models:v1",
            f"{PARTNER}/models:v1 cannot be read in {PARTNER} (AccessDeniedException); allowed: an image that can be read there",
        ),
        (
            "one whose manifest is empty",
            "images:bare",
            f"images:bare cannot be read in {REGISTRY} (its manifest names no configuration and no layers); allowed: an image "
            "that can be read there",
        ),
        (
            "one whose index has no image for Linux",
            "images:windows",
            f"images:windows cannot be read in {REGISTRY} (its index names no image for Linux that the registry has); allowed: an "
            "image that can be read there",
        ),
        (
            "one for another system",
            "images:pane",
            f"images:pane cannot be read in {REGISTRY} (it is an image for windows, and nodes run linux); allowed: an image that can "
            "be read there",
        ),
        (
            "an index without the type's processors",
            "images:arms",
            "images:arms is for arm64, and g5.xlarge has x86_64; allowed: an image for the processors of the type",
        ),
        (
            "one for other processors",
            "images:graviton",
            "images:graviton is for arm64, and g5.xlarge has x86_64; allowed: an image for the processors of the type",
        ),
        _alone(
            "one with nothing to run, and no command",
            "images:libraries",
            "image: images:libraries has no entry point and no command of its own; allowed: command in the request",
        ),
        Row(
            "one that fills the disk",
            {"image": "images:large", "volume_gb": 30},
            "volume_gb: 30 is too small for the image ami-0123456789abcdef0; allowed: at least 75",
            "volume_gb: 30 is too small for the container's image, which takes about 60.0 GiB, packed and unpacked; allowed: more than "
            "60, and room for the machine's image, the code and the checkpoints",
        ),
        Row(
            "one beside a deep health check",
            {"image": "images:v1", "health": "deep"},
            "health: deep measures with the machine's PyTorch, and a training in an image uses the image's; allowed: quick, or off",
        ),
        Row(
            "one beside a wrong code",
            {**LEAST, "image": "images:gone", "code": 7},
            f"code: 7 is not a string; allowed: {CODE}",
            f"image: images:gone does not exist in eu-central-1 ({REGISTRY}/yard/images:gone); allowed: {THERE}",
        ),
    ),
)
ARGUMENTS = Section(
    "arguments",
    "a list of 1 to 1,000 strings",
    entry="strings of up to 128,000 bytes",
    rows=(
        (
            "without an image",
            ["--epochs", "3"],
            "the request has no image; allowed: arguments beside an image, or words of command",
        ),
        ("an empty list", [], "is empty"),
        ("a text", "--epochs 3", '"--epochs 3" is not a list'),
        ("a number among them", ["--epochs", 3], ".1: 3 is not a string"),
        ("a NUL character", ["a\x00b"], ".0: holds a NUL character; allowed: all others"),
        _alone(
            "for an image without an entry point",
            "images:shell",
            "arguments: images:shell has no entry point that would take them; allowed: command beside them",
            arguments=["--epochs", "3"],
        ),
        Row(
            "a file after the command that the archive lacks",
            {
                "image": "images:v1",
                "code": "s3://yard-home/uploads/main.tar.gz",
                "command": ["python"],
                "arguments": ["mian.py"],
            },
            "command: runs mian.py, which is not in s3://yard-home/uploads/main.tar.gz (did you mean main.py?); allowed: a file of the "
            "archive, by its path from the archive's root",
        ),
        _alone(
            "beside a wrong image, the only reason shown",
            "images",
            f"image: images has neither a tag nor a digest; allowed: {MAY_BE}",
            arguments=["--epochs", "3"],
        ),
    ),
)
