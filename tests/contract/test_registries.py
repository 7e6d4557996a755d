"""Whose an image is: a name that looks like ours is not, and another owner's image never gets another address."""

from __future__ import annotations

import pytest

from contract.images import parsed
from contract.registries import Registries

ACCOUNT, AWSS, ASIA, OTHER = "111122223333", "763104351884", "871362719292", "999988887777"
KNOWN = Registries(
    deployment="yard",
    account=ACCOUNT,
    suffix="amazonaws.com",
    repositories=("images", "grid"),
    base_accounts={"": AWSS, "ap-east-1": ASIA, "mars-north-1": ""},
)


def host(account: str, region: str) -> str:
    return f"{account}.dkr.ecr.{region}.amazonaws.com"


def there(image: str, region: str) -> str | None:
    found = KNOWN.in_region(parsed(image), region)
    return None if found is None else str(found)


@pytest.mark.parametrize("image", ["images:1", f"{host(ACCOUNT, 'eu-central-1')}/yard/images:1"])
def test_an_image_of_the_deployment_lies_in_every_region_under_the_same_name(image: str) -> None:
    assert KNOWN.is_ours(parsed(image))
    assert there(image, "us-east-1") == f"{host(ACCOUNT, 'us-east-1')}/yard/images:1"


@pytest.mark.parametrize(
    "image",
    [
        "pytorch-training:2.8",
        f"{host(AWSS, 'eu-central-1')}/pytorch-training:2.8",
        f"{host(ASIA, 'ap-east-1')}/pytorch-training:2.8",
    ],
)
def test_one_of_awss_lies_in_the_registry_that_aws_has_in_the_region(image: str) -> None:
    assert KNOWN.is_awss(parsed(image))
    assert there(image, "us-east-1") == f"{host(AWSS, 'us-east-1')}/pytorch-training:2.8"
    assert there(image, "ap-east-1") == f"{host(ASIA, 'ap-east-1')}/pytorch-training:2.8"
    assert there(image, "mars-north-1") is None


@pytest.mark.parametrize(
    "image",
    [
        f"{host(OTHER, 'eu-central-1')}/yard/images:1",
        f"{host(OTHER, 'eu-central-1')}/pytorch-training:2.8",
        f"{host(ACCOUNT, 'eu-central-1')}/images:1",
        f"{host(ACCOUNT, 'eu-central-1')}/yard/other:1",
        f"{host(ACCOUNT, 'eu-central-1')}/lab/images:1",
        "public.ecr.aws/yard/images:1",
        f"{host(ACCOUNT, 'eu-central-1')}.evil.example/yard/images:1",
    ],
)
def test_what_only_looks_like_ours_or_awss_keeps_its_address(image: str) -> None:
    assert not KNOWN.is_ours(parsed(image))
    assert not KNOWN.is_awss(parsed(image))
    assert there(image, "us-east-1") == image


def test_without_containers_of_awss_no_account_is_theirs() -> None:
    nowhere = Registries(
        deployment="yard", account=ACCOUNT, suffix="amazonaws.com", repositories=(), base_accounts={"": ""}
    )
    assert nowhere.awss == frozenset()
    assert not nowhere.is_awss(parsed("public.ecr.aws/docker/library/python:3.12"))
    assert nowhere.in_region(parsed("pytorch-training:2.8"), "eu-central-1") is None
