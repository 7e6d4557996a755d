"""Acts on the verdict on an attempt: orders, the answer to Train, messages to people and the nodes' credentials."""

from __future__ import annotations

from collections.abc import Callable

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from attendant import notices, unhealthy
from attendant.facts import AttemptFacts, MissingAttempt
from attendant.invocation import Invocation
from attendant.notices import Message
from attendant.policy import Action, Verdict
from attendant.rounds import LookRound
from attendant.sessions import renew_sessions
from attendant.telling import tell_once
from aws import states
from aws.errors import Raced
from aws.state import State, Token
from contract import items
from contract.orders import Order

logger = Logger(service="attendant")


def act(
    invocation: Invocation,
    looks: LookRound,
    token: Token,
    facts: AttemptFacts | MissingAttempt,
    verdict: Verdict,
    *,
    now: float,
) -> None:
    """Acts on the verdict. What nodes and the table have to know comes before the answer to Train, and what nothing waits for after it."""
    state = invocation.state
    try:
        if isinstance(facts, AttemptFacts):
            role = invocation.env.node_role
            if verdict.order is not None and verdict.released:
                state.give_order(facts.job, role, [facts.ids[rank] for rank in verdict.released], verdict.order)
            else:
                give_order(state, role, facts, verdict.order, clock=invocation.clock)
            _note_unhealthy(state, facts, verdict)
    finally:  # the code of a job can keep a node's copy of the order from being written, and must not keep Train waiting by that
        is_awaited = _answer_train(state, token, verdict)
    if not isinstance(facts, AttemptFacts):
        return
    if is_awaited or verdict.ends:
        _tell_people(invocation, facts, verdict, now)
    if is_awaited and not verdict.ends and not looks.is_urgent:
        renew_sessions(state, invocation.env, facts, now=now)


def give_order(
    state: State, role: str, facts: AttemptFacts, order: Order | None, *, clock: Callable[[], float]
) -> None:
    """Creates the attempt's order where the verdict has one, and writes a copy for every node that does not have it yet."""
    given, ranks = facts.order, facts.uninformed
    if order is not None:
        try:
            state.create_order(facts.job, facts.attempt, order)
        except Raced:
            logger.info("the attempt has its order already", job=facts.job.id, attempt=facts.attempt)
        given, ranks = state.order(facts.job.id, facts.attempt, now=clock()), list(range(len(facts.ids)))
    if given is None:
        return
    # A node that asked for the order obeys once it has its copy, and its peers' trainers fail when its own stops: so it comes last.
    author = [rank for rank in ranks if given.order.author == f"rank {rank}"]
    for some in ([rank for rank in ranks if rank not in author], author):
        state.give_order(facts.job, role, [facts.ids[rank] for rank in some], given.order)


def _note_unhealthy(state: State, facts: AttemptFacts, verdict: Verdict) -> None:
    """Notes the machines because of which the attempt ends, before Train knows. Without the note the attempt ends all the same."""
    try:
        state.note_unhealthy(facts.job, unhealthy.list_nodes(facts, verdict.unhealthy))
    except (ClientError, BotoCoreError):
        logger.exception("could not note unhealthy machines", job=facts.job.id, attempt=facts.attempt)


def _answer_train(state: State, token: Token, verdict: Verdict) -> bool:
    """Sends the verdict to Train. Returns whether Train still waits; where it does not, by this verdict or an earlier one, the token
    is deleted."""
    if verdict.action is Action.SUCCEED:
        states.success(token.token, {"reason": verdict.reason, "progress": verdict.progress})
    elif verdict.action is Action.FAIL:
        logger.info(
            "an attempt fails", job=token.job, attempt=token.attempt, error=verdict.error, reason=verdict.reason
        )
        states.failure(token.token, verdict.error, verdict.reason)
    elif states.heartbeat(token.token):
        return True
    state.delete(token.key)
    return False


def _tell_people(invocation: Invocation, facts: AttemptFacts, verdict: Verdict, now: float) -> None:
    """Sends the messages that are due at this look. The next look, if there is one, sends what could not be sent."""
    state, topic = invocation.state, invocation.env.topic
    job, attempt, stall = facts.job, facts.attempt, verdict.stall
    if reason := notices.stall_reason(facts, verdict):
        tell_once(
            state, topic, items.stall_notice(job.id, attempt), now=now,
            word=lambda: notices.word_stall(job, attempt, reason, goes_on=stall is not None, cost=_word_cost(state, facts, now)),
            **({} if stall is None else {"is_news": stall.is_news}),
        )  # fmt: skip
    if notices.trains_again(facts, verdict):
        key = items.recovery_notice(job.id, attempt)
        tell_once(state, topic, key, lambda: _word_recovery(state, facts, now), now=now)


def _word_recovery(state: State, facts: AttemptFacts, now: float) -> Message:
    return notices.word_recovery(facts, state.endings(facts.job.id), _word_cost(state, facts, now))


def _word_cost(state: State, facts: AttemptFacts, now: float) -> str:
    return notices.cost_so_far(facts.job, state.walks(facts.job.id), state.ends(facts.job.id), now=now)
