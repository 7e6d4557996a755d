"""Sends a message once, however many looks see its reason: the sender notes that it begins, sends, and notes that it has sent."""

from __future__ import annotations

from collections.abc import Callable

from aws_lambda_powertools import Logger

from attendant.notices import Message
from aws.clients import IN_PASSING
from aws.errors import Raced
from aws.state import Notified, State
from aws.topic import publish
from contract import events
from contract.items import ItemKey

logger = Logger(service="attendant")
SENDS_S = 120.0
"""An invocation that began to send a message so long ago has died: its time-out is half of it."""


def is_never_news(_since_message_s: float) -> bool:
    """Whether a message is sent again that was sent so long ago: never."""
    return False


def tell_once(
    state: State,
    topic: str,
    key: ItemKey,
    word: Callable[[], Message],
    *,
    now: float,
    is_news: Callable[[float], bool] = is_never_news,
) -> bool:
    """Publishes the message that `key` stands for, unless another look has or does. Returns False where a later look has to try again,
    for which nothing waits. The message is sent twice only where its sender dies, or loses the table, before it has noted that it was
    sent."""
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
        logger.info("another look sends the message", item=key.partition, of=key.sort)
    except Exception:  # nothing waits for a message, whatever is wrong with it
        logger.exception("could not send a message; a later look sends it", item=key.partition, of=key.sort)
    else:
        logger.info("sent a message", job=message.job, event=message.event)
        return True
    return False


def _is_due(before: Notified, now: float, is_news: Callable[[float], bool]) -> bool:
    since_s = now - before.at
    return is_news(since_s) if before.whole else since_s > SENDS_S
