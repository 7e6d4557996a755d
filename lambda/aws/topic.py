"""Every SNS call of the functions."""

from __future__ import annotations

from typing import Any

from aws.clients import client

SUBJECT = 100
"""SNS takes subjects of at most 100 printable ASCII characters ..."""
MESSAGE_BYTES = 200_000
"""... and messages of 256 KiB; mail wants less."""


def publish(topic: str, subject: str, message: str) -> None:
    """Sends a message to everybody who subscribed to the topic. Raises ClientError or BotoCoreError."""
    sns: Any = client("sns")
    plain = "".join(one if " " <= one <= "~" else "?" for one in subject)
    sns.publish(
        TopicArn=topic, Subject=plain[:SUBJECT], Message=message.encode()[:MESSAGE_BYTES].decode(errors="ignore")
    )
