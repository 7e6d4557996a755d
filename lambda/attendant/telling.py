"""Sends a message once, however many looks see its reason: whoever sends it notes that first, and that it has, afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aws_lambda_powertools import Logger

from aws.clients import IN_PASSING
from aws.errors import Raced
from aws.state import Notified, State
from aws.topic import publish
from contract import events
from contract.events import Event
from contract.items import ItemKey

logger = Logger(service="attendant")
TELLS_S = 120.0
"""Whoever began to tell people so long ago has died: the time-out of its invocation is half of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What people are told."""

    event: Event
    job: str
    owner: str
    subject: str
    text: str


def never(_told_s: float) -> bool:
    """Whether people are told again of what they were told of so long ago."""
    return False


def tell_once(
    state: State,
    topic: str,
    key: ItemKey,
    word: Callable[[], Message],
    *,
    now: float,
    is_news: Callable[[float], bool] = never,
) -> bool:
    """Publishes the message that `key` stands for, unless somebody has or does. False where a later look has to try again: that keeps
    nobody waiting. The message is sent twice only where its sender dies, or loses the table, before it has noted that it was sent."""
    try:
        before = state.read_notice(key)
        if before is not None and not _is_due(before, now, is_news):
            return before.whole
        message = word()
        claimed = state.tell(key, before, whole=False)
        attributes = {events.EVENT: message.event.value, events.JOB: message.job, events.OWNER: message.owner}
        publish(topic, message.subject, message.text, IN_PASSING, attributes=attributes)
        state.tell(key, claimed, whole=True)
    except Raced:
        logger.info("people are told by another look", item=key.partition, of=key.sort)
    except Exception:  # nobody waits for a message, whatever is wrong with it
        logger.exception("the message could not be sent; a later look tells them", item=key.partition, of=key.sort)
    else:
        logger.info("people were told", job=message.job, event=message.event)
        return True
    return False


def _is_due(before: Notified, now: float, is_news: Callable[[float], bool]) -> bool:
    told_s = now - before.at
    return is_news(told_s) if before.whole else told_s > TELLS_S
