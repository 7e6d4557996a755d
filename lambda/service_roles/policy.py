"""Decides what an account's answer about a service-linked role means for a deploy."""

from __future__ import annotations

from collections.abc import Mapping


def refusals(failed: Mapping[str, str]) -> str | None:
    """What a person reads where roles could not be made: `failed` is service to AWS's reason; None where all stand."""
    if not failed:
        return None
    lines = [
        f"- the role of {service}: {why}\n  Create it once: aws iam create-service-linked-role --aws-service-name {service}"
        for service, why in sorted(failed.items())
    ]
    return "\n".join(["The account lacks roles of AWS's own services, and Trainyard could not create them:", *lines])
