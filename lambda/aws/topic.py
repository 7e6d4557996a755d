"""Every SNS call of the functions."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from botocore.config import Config

from aws.clients import PATIENT, client

SUBJECT = 100
"""SNS takes subjects of at most 100 printable ASCII characters ..."""
MESSAGE_BYTES = 200_000
"""... and messages of 256 KiB; mail wants less."""


BIDIRECTIONAL = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that show what follows them in another order."""


def publish(
    topic: str,
    subject: str,
    message: str,
    config: Config = PATIENT,
    *,
    attributes: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Sends a message to everybody who subscribed to the topic. `attributes`: what subscriptions can be filtered by; empty ones are left
    out, which SNS rejects. Raises ClientError or BotoCoreError."""
    sns: Any = client("sns", config=config)
    plain = "".join(one if " " <= one <= "~" else "?" for one in subject)
    sns.publish(
        TopicArn=topic,
        Subject=plain[:SUBJECT],
        Message=_harmless(message).encode()[:MESSAGE_BYTES].decode(errors="ignore"),
        MessageAttributes={
            name: {"DataType": "String", "StringValue": _harmless(value)} for name, value in attributes.items() if value
        },
    )


def _harmless(text: str) -> str:
    """The text without what a terminal obeys, what a reader is misled by, and what cannot be sent: code of a job may have written it."""
    return "".join(
        "?" if one in BIDIRECTIONAL or (unicodedata.category(one) in {"Cc", "Cs"} and one not in "\n\t") else one
        for one in text
    )
