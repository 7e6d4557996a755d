"""Refusals of a machine image."""

from __future__ import annotations

from tools.refusals.jobs.table import Section

MACHINE_IMAGE = Section(
    "machine_image",
    "the name of an image (machine_images in cdk.json has them), as in digits",
    rows=(
        ("a number", 7, "7 is not a string"),
        (
            "an AMI id",
            "ami-0123456789abcdef0",
            "ami-0123456789abcdef0 is not an image of this deployment; allowed: digits, gone, graviton (machine_images in cdk.json)",
        ),
        ("capital letters", "Digits", '"Digits" does not have the right form'),
        (
            "one that the deployment does not have",
            "cifar",
            "cifar is not an image of this deployment; allowed: digits, gone, graviton (machine_images in cdk.json)",
        ),
        (
            "one that the region does not have",
            "gone",
            "gone (/aws/service/gone) names no image in eu-central-1; allowed: an image that the region has",
        ),
        (
            "one for other processors",
            "graviton",
            "g5.xlarge would start from ami-0123456789abcdef1, an image for arm64; allowed: images for x86_64",
        ),
    ),
)
