"""Words the causes of verdicts for people: what happened to an attempt, what followed from it, and where to look."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attendant.ages import newest_set
from attendant.causes import Cause
from attendant.facts import SURE_S, AttemptFacts
from attendant.stalls import StallFacts
from contract import keys, names, sessions
from contract.errors import BY_NAME, TrainingFailed
from contract.jobs import Job, Reaction
from contract.orders import Order
from contract.reports import LAST_OUTPUT, NOT_BEGUN, Exit
from contract.roles import RoleEnd, find_place, name_author, name_place, name_ranks
from contract.shapes import find_rung

FOLLOWS = {
    Reaction.NOTIFY: "",
    Reaction.RESTART: "A new attempt begins if one is left. The log of each node has its stacks.",
    Reaction.STOP: "The job ends, as the request says. The log of each node has its stacks.",
}
"""What follows a stall."""
SHOWN = 5
"""Unhealthy machines that get a sentence each."""
LINE = 200
"""Characters of a line of output that is quoted in a sentence."""


def own_failure(facts: AttemptFacts, rank: int, others: Sequence[int]) -> Cause:
    """Words the error that counts: how the command ended, which ranks failed after it, and whose end before it means nothing to the job,
    its last lines, and where the whole log is."""
    end, began = facts.ends[rank], "started" in facts.nodes[rank].report.timeline
    failed = [one for one in others if facts.ends[one].code or facts.ends[one].error]
    preceded, followed = _split_ends(facts, failed, facts.nodes[rank].failed_s)
    output = [LAST_OUTPUT, *(f"  {line}" for line in end.tail)] if end.tail else []
    stream = names.log_stream(facts.job.id, facts.attempt, rank)
    name = _name(facts, rank)
    how = f"{name}: the command {_how(end)}." if began else f"{name} {NOT_BEGUN}."
    if began and end.error in BY_NAME and end.error != TrainingFailed.__name__:
        how = f"{name} ended with {end.error}."
    return Cause(
        " ".join(one for one in (how, _explain_server(facts, rank), preceded.text, followed.text) if one),
        (*_quote(facts, rank, end.reason), *_quote(facts, rank, "\n".join(output)), *preceded.said, *followed.said),
        f"The whole log: log group {facts.job.log_group}, stream {stream}.",
    )


def _explain_server(facts: AttemptFacts, rank: int) -> str:
    """Says why the end of a server counts; empty for other nodes."""
    place = find_place(facts.job.roles, rank)
    if place is None or place.role.ends is not RoleEnd.SERVED:
        return ""
    return (
        f'The role {place.role.name} ends "{RoleEnd.SERVED.value}": the job needs it until it is done. With "ends": '
        f'"{RoleEnd.FREELY.value}" its nodes may end earlier.'
    )


def left(facts: AttemptFacts, rank: int, left_s: float) -> Cause:
    """Words that a server ended with 0 while others need it, how long ago, and what the request can say."""
    working = [one for one in facts.deciding if one not in facts.ends]
    stream = names.log_stream(facts.job.id, facts.attempt, rank)
    return Cause(
        f"{_name(facts, rank)} ended with exit code 0 {left_s:.0f} s ago, and {_names(facts, working)} still "
        f"work{'' if len(working) > 1 else 's'} (allowed: {facts.job.timing.silence_s:.0f} s, by silence_s). "
        f"{_explain_server(facts, rank)}",
        place=f"The whole log: log group {facts.job.log_group}, stream {stream}.",
    )


def loss(facts: AttemptFacts, rank: int, why: str) -> Cause:
    """Words a lost node, the order that explains it if there is one, and how its peers ended after it."""
    ordered = order(facts, facts.obeyed) if facts.obeyed else Cause("")
    last, since_s = _last_words(facts, rank), facts.nodes[rank].age_s if rank in facts.nodes else math.inf
    failed = [one for one, end in facts.ends.items() if end.code or end.error]
    preceded, followed = _split_ends(facts, failed, since_s)
    sentences = [f"{_name(facts, rank, facts.ids[rank])} {why}.", ordered.text, last.text, preceded.text, followed.text]
    said = (*ordered.said, *last.said, *preceded.said, *followed.said)
    return Cause(" ".join(one for one in sentences if one), said)


def _split_ends(facts: AttemptFacts, failed: Sequence[int], since_s: float) -> tuple[Cause, Cause]:
    """Words the ends that certainly came before something `since_s` seconds ago, and those that may have followed from it."""
    earlier = [rank for rank in failed if facts.nodes[rank].failed_s > since_s + SURE_S]
    later = [rank for rank in failed if rank not in earlier]
    return after(facts, earlier, when="before"), after(facts, later)


def order(facts: AttemptFacts, given: Order) -> Cause:
    """Words why nodes were ordered to stop. A node's own reason, such as a spot notice, is quoted."""
    if not given.author.startswith("rank "):
        return Cause(given.reason)
    known, author = f" ({given.error})" if given.error in BY_NAME else "", name_author(facts.job.roles, given.author)
    return Cause(f"{author} asked all nodes to stop{known}.", (f"{author}: {given.reason}",))


def after(facts: AttemptFacts, ranks: Sequence[int], *, when: str = "after") -> Cause:
    """One sentence for all ranks that ended in the same way, `Ranks 0, 1 exited with code 1 after it.`, and the last line of one."""
    ways: dict[str, list[int]] = {}
    for rank in ranks:
        ways.setdefault(_how(facts.ends[rank]), []).append(rank)
    said = (line for same in ways.values() for line in _quote(facts, same[0], _find_last_line(facts.ends[same[0]])))
    return Cause(
        " ".join(f"{_names(facts, same).capitalize()} {how} {when} it." for how, same in ways.items()), tuple(said)
    )


def unhealthy(facts: AttemptFacts, wrong: Mapping[int, str], errors: Sequence[int]) -> Cause:
    """Words which machines are at fault, what followed from it, and what a person can do."""
    each = [f"{_name(facts, rank, facts.ids[rank], _place(facts, rank))} has an unhealthy machine." for rank in wrong]
    more = [f"{len(each) - SHOWN} more ranks have unhealthy machines."] if len(each) > SHOWN else []
    advice = "A new attempt tries this zone last. If it happens there again, give the instance id to AWS Support."
    followed = after(facts, errors)
    said = (line for rank, why in [*wrong.items()][:SHOWN] for line in _quote(facts, rank, why))
    text = " ".join(one for one in [*each[:SHOWN], *more, followed.text, advice] if one)
    return Cause(text, (*said, *followed.said))


def _place(facts: AttemptFacts, rank: int) -> str:
    if facts.rung is None:
        return ""
    return f"{find_rung(facts.job, facts.rung, rank).instance_type} in {facts.rung.zone}"


def examining(facts: AttemptFacts, rank: int) -> str:
    return f"{_name(facts, rank)} {_how(facts.ends[rank])}, and its agent examines the machine for a fault"


def waiting(facts: AttemptFacts, failed: int, unheard: Sequence[int]) -> str:
    return (
        f"{_name(facts, failed)} {_how(facts.ends[failed])}; a later report of {_names(facts, unheard)} will show whether the error is "
        "its own"
    )


def stall(facts: AttemptFacts, rank: int, setting: str, most: float) -> Cause:
    node = facts.nodes[rank]
    return Cause(
        f"{_name(facts, rank, facts.ids[rank])} still reports, and has been {node.report.phase.value} for {node.phase_s:.0f} s "
        f"(allowed: {most:.0f} s, by {setting}).",
        _quote(facts, rank, node.report.note),
    )


def over(job: Job) -> str:
    """Words what ends the job's time."""
    if job.money_ends:
        return f"The job has used up the ${job.max_cost_usd:g} of its max_cost_usd."
    return f"The job's {job.max_hours:g} hours are over."


def still(facts: AttemptFacts, stall: StallFacts) -> str:
    """Words that a training makes no progress: for how long, by what, at which step, and what the request allows."""
    rule, report = facts.job.stall, facts.nodes[stall.rank].report
    allowed = f"allowed: {rule.minutes:g} min, by stall.minutes of the request" if rule else ""
    by = (
        f"its progress file says step {report.progress.step}"
        if report.progress
        else "it writes no output and no checkpoint"
    )
    said = f"The training has made no progress for {stall.idle_s / 60:.3g} min ({allowed}): {_name(facts, stall.rank)} reports, and {by}."
    return f"{said} {FOLLOWS[stall.then]}".strip()


def refused_role(facts: AttemptFacts) -> str:
    """Words which role STS denies the training, since when, and what an administrator can do."""
    name, known, timing = facts.job.job_role, facts.sessions, facts.job.timing
    role = f"The role {facts.training_role}" if facts.training_role else "The role"
    denied_s = known.refused_last - known.refused_from
    return (
        f"{role} that the request names as job_role (job_roles.{name} in cdk.json) cannot be assumed: STS has denied it for "
        f"{denied_s:.0f} s (allowed: {timing.role_patience_s:.0f} s, by role_patience_s). "
        f"{sessions.explain_denial(facts.job.deployment, name)} STS says: {known.refusal}"
    )


def refused_session(facts: AttemptFacts) -> str:
    """Words that STS refuses the job's own session, since when, and what an administrator can do."""
    known, timing, deployment = facts.sessions, facts.job.timing, facts.job.deployment
    refused_s = known.own_refused_last - known.own_refused_from
    keys_left = "have no credentials" if not known.since else "cannot get new credentials, and theirs expire soon"
    return (
        f"The nodes {keys_left}: STS has refused sessions of {names.job_role(deployment, facts.job.home_region)} for {refused_s:.0f} s "
        f"(allowed: {timing.role_patience_s:.0f} s, by role_patience_s). "
        f"{sessions.explain_denial(deployment)} STS says: {known.own_refusal}"
    )


def done(facts: AttemptFacts, awaited: Sequence[int]) -> str:
    """Words that every node ended that decides, who is waited for, and how the others ended."""
    if not facts.job.roles:
        return f"all {facts.job.nodes} nodes ended with exit code 0"
    names = ", ".join(role.name for role in facts.job.roles if role.ends is RoleEnd.JOB)
    said = [f"all {len(facts.deciding)} nodes of {names} ended with exit code 0"]
    if awaited:
        return f"{said[0]}; {_names(facts, awaited)} {'is' if len(awaited) == 1 else 'are'} waited for"
    for rank in facts.others:
        end = facts.ends.get(rank)
        how = "had not ended" if end is None else "was stopped" if end.ordered else f"exited with code {end.code}"
        said.append(f"{name_place(facts.job.roles, rank)} {how}")
    return "; ".join(said)


def uneven(facts: AttemptFacts, first: int) -> str:
    working = [rank for rank in facts.deciding if rank not in facts.ends]
    timing = facts.job.timing
    return (
        f"rank {first} ended {facts.nodes[first].age_s:.0f} s ago, and {_names(facts, working)} still run{'' if len(working) > 1 else 's'} "
        f"(allowed: {timing.uneven_allowance_s:.0f} s, by uneven_allowance_s)."
    )


def apart(facts: AttemptFacts, started: Mapping[int, tuple[str, int]]) -> Cause:
    """Words that ranks began from different checkpoints: one rank for each."""
    ranks = {start: rank for rank, start in sorted(started.items(), reverse=True)}
    starts = sorted(ranks.items(), key=lambda each: each[1])
    each = [f"{_name(facts, rank)} from {f'step {step}' if name else 'the beginning'}" for (name, step), rank in starts]
    said = (line for (name, _), rank in starts for line in _quote(facts, rank, name))
    return Cause(
        f"The ranks started from different checkpoints: {', '.join(each)}. The log of each says why.", tuple(said)
    )


def checkpoints(facts: AttemptFacts) -> str:
    """Words what a next attempt can start from. Only a closed set is a checkpoint; agents of older jobs know no sets."""
    reports = [node.report for node in facts.nodes.values()]
    closed, age_s = newest_set(facts)
    steps = [one.checkpoint_step for one in reports if one.checkpoint and keys.set_of(one.checkpoint) is None]
    newest = max((closed, *steps))
    if newest < 0:
        return "This attempt has no checkpoint."
    since = f", closed {age_s:.0f} s ago" if newest == closed and age_s is not None else ""
    return f"The newest checkpoint is of step {newest}{since}."


def summary(facts: AttemptFacts) -> str:
    phases = [
        facts.nodes[rank].report.phase.value if rank in facts.nodes else "booting" for rank in range(facts.job.nodes)
    ]
    counts = ", ".join(f"{phases.count(phase)} {phase}" for phase in dict.fromkeys(phases))
    ended = sum(node.report.exit is not None for node in facts.nodes.values())
    return f"{counts}; {ended} of {facts.job.nodes} have ended"


def progress(facts: AttemptFacts) -> dict[str, object]:
    """Returns what the execution shows of the training: the progress of the lowest rank that reports one."""
    for rank in sorted(facts.nodes):
        report = facts.nodes[rank].report
        if report.progress is not None:
            return {
                "step": report.progress.step,
                "world_size": report.progress.world_size,
                "metric": report.progress.metric,
                **({"diverged": report.progress.diverged} if report.progress.diverged else {}),
                "restored_step": report.restored_step,
            }
    return {}


def _last_words(facts: AttemptFacts, rank: int) -> Cause:
    node = facts.nodes.get(rank)
    if node is None:
        return Cause(f"It never reported.{facts.console.get(rank, '')}")
    return Cause(
        f"Its last report, {node.age_s:.0f} s old, said: {node.report.phase.value}.",
        _quote(facts, rank, node.report.note),
    )


def _how(end: Exit) -> str:
    return f"ended as ordered ({end.error})" if end.ordered else f"exited with code {end.code}"


def _name(facts: AttemptFacts, rank: int, *more: str) -> str:
    """Returns the rank, and in brackets its role and what else is known of it."""
    inside = ", ".join(filter(None, (name_place(facts.job.roles, rank), *more)))
    return f"rank {rank} ({inside})" if inside else f"rank {rank}"


def _names(facts: AttemptFacts, ranks: Sequence[int]) -> str:
    return name_ranks(facts.job.roles, ranks)


def _quote(facts: AttemptFacts, rank: int, said: str) -> tuple[str, ...]:
    """Returns the lines that a rank said. The first names the rank and its role, of which a node may say the number alone."""
    first, *others = said.splitlines() or [""]
    name = _name(facts, rank)
    for known in (f"{name}:", f"rank {rank}:"):
        first = first.removeprefix(known)
    return (f"{name}: {first.strip()}", *(f"  {line}" for line in others)) if said.strip() else ()


def _find_last_line(end: Exit) -> str:
    """Returns the last line that says something."""
    return next((line.strip()[:LINE] for line in reversed(end.tail) if line.strip()), "")
