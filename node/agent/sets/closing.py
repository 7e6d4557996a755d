"""Closes the sets of an attempt to which every rank has answered, and says when no set will ever be whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from agent.position import Position
from agent.retention import History, history
from agent.sets.leaving import drop_files, fill_last, find_awaited, find_gone, find_required, find_spare
from agent.sets.outcomes import find_left_out, is_hopeless, judge_parts
from agent.sets.state import SetState
from agent.store import Missing, Store
from contract.codec import Garbled, decode, encode
from contract.commits import CheckpointSet, Commit, EmptyPart, Missed, Part, SetPlan
from contract.keys import LAST_SET, BytesPrefix, CommitKind
from contract.roles import name_ranks

AT_A_TIME = 8
"""Parts that are read side by side: there is one of each rank."""


class NeverWhole(Exception):
    """The ranks do not save what can be restored together; the message says what to do."""


class Closer:
    """Of one rank in one attempt. All ranks may close a set at once: they write the same."""

    def __init__(
        self, place: Position, store: Store, state: SetState, *, now: Callable[[], float], note: Callable[[str], None]
    ) -> None:
        self._place, self._store, self._state, self._now, self._note = place, store, state, now, note
        self._keys = BytesPrefix(place.job.id)
        self._problem, self._lacks_ranks = "", False

    def settle(self) -> History:
        """Closes each set of this attempt to which the last rank has answered. Raises NeverWhole."""
        state, attempt = self._state, self._place.attempt
        known = history(self._store.keys(self._keys.commits(CommitKind.CHECKPOINTS)))
        answered = known.answered(attempt, self._place.ranks, self._place.spare)
        if LAST_SET in state.plans and LAST_SET not in answered:
            answered |= self._fill_last(known)
        for number in sorted(state.plans.keys() & answered.keys()):
            if number > state.settled or (number == state.unfit and Part.MISSED in answered[number].values()):
                known = self._settle_set(known, number, answered[number])
                state.settled = max(state.settled, number)
        state.unsettled = False
        blamed = {number: parts for number, parts in answered.items() if not self._is_openers_own(number, parts)}
        since_s = self._now() - min((plan.opened_at for plan in state.plans.values()), default=self._now())
        hopeless = self._lacks_ranks and not known.closed
        if hopeless or is_hopeless(blamed, any_closed=bool(known.closed), since_s=since_s):
            said = (self._explain_miss(number, answered[number]) for number in sorted(answered, reverse=True))
            why = self._problem or next(filter(None, said), "")  # an answer may be taken back once its set was closed
            raise NeverWhole(f"none of {len(answered)} checkpoints was whole: {why}")
        return known

    def _settle_set(self, known: History, number: int, parts: dict[int, Part]) -> History:
        """Closes a set unless it is closed, or its parts are no checkpoint."""
        state, plan, at = self._state, self._state.plans[number], (self._place.attempt, number)
        left = tuple(known.parts(self._place.attempt, LAST_SET))
        if number == LAST_SET and at in known.closed:
            self._close_again(plan)
        if at not in known.closed:
            problem = self._close_without(plan, parts, () if number == LAST_SET else left, known)
            if not problem:
                known = known.with_closed(*at, self._keys.closed(*at))
            elif set(parts.values()) != {Part.NOTHING}:
                self._problem = problem
                self._note(f"checkpoints: set {number} is not complete: {problem}")
        if at in known.closed:
            state.closed_step = max(state.closed_step, state.plans[number].step, 0)
        elif plan.layout and Part.MISSED not in parts.values():
            state.unfit = number
        elif plan.layout and number == state.number - 1:
            state.done, state.unfit = "", 0  # what a layout keeps in its place can be in the next set
        return known

    def _fill_last(self, known: History) -> dict[int, dict[int, Part]]:
        """Returns the last set with nothing of nodes that have not answered it, where the job is done and it waits for none of them."""
        place, awaited = self._place, find_awaited(self._place, known)
        filled = fill_last(place, known)
        if not set(awaited) <= set(place.may_leave) or not self._is_done(filled):
            return {}
        if awaited:
            ranks = name_ranks(place.job.roles, awaited)
            self._note(
                f"the last checkpoint waits for files of {ranks}, which have some in S3 already: without them it may be half of one. "
                "If they are lost, or end with another step, the checkpoint before it stays the newest; "
                'it does not wait for roles with "checkpoints": false'
            )
            return {}
        return {LAST_SET: filled}

    def _close_without(self, plan: SetPlan, parts: dict[int, Part], left: Collection[int], known: History) -> str:
        """Closes a set, if need be without files that can be spared: they cannot speak against it. The reason where it cannot."""
        place, number = self._place, plan.number
        spare, gone = find_spare(place, number), find_gone(place, known) if number == LAST_SET else frozenset[int]()
        ways = [(parts, left), (drop_files(parts, spare), left)]
        if gone:
            ways.append((drop_files(parts, spare | gone), gone))
        problem = ""
        for tried, (way, without) in enumerate(ways):
            if (way, without) not in ways[:tried] and not (problem := self._close(plan, way, without)):
                break
        if number != LAST_SET:
            return problem
        if not problem:
            self._close_again(plan)
        return problem and f"{problem}{self._explain_servers(plan, parts)}"

    def _explain_servers(self, plan: SetPlan, parts: Mapping[int, Part]) -> str:
        """Words what would have closed the last set, where it fails by what servers answered alone; empty otherwise."""
        place, spare = self._place, find_spare(self._place, LAST_SET)
        servers = [rank for rank in place.may_leave if rank not in spare and parts[rank] is not Part.NOTHING]
        others = {rank: Part.NOTHING if rank in place.may_leave else part for rank, part in parts.items()}
        if not servers or self._explain_miss(LAST_SET, others) or self._judge(plan, others, place.may_leave)[0]:
            return ""
        ranks = name_ranks(place.job.roles, servers)
        return (
            f". The others agree without {ranks}, whose files may be a part of it, so the checkpoint before it stays the newest; "
            'with "checkpoints": false in their role it is closed without them'
        )

    def _close_again(self, plan: SetPlan) -> None:
        """Closes the last set once more as long as a rank has answered it with files that it lacks: it ended after the job was done."""
        place, at = self._place, (self._place.attempt, plan.number)
        while place.may_leave:
            known = history(self._store.keys(self._keys.of_set(*at)))
            if at not in known.closed:
                return
            closed = decode(CheckpointSet, self._store.get(self._keys.closed(*at)))
            parts = dict.fromkeys(range(place.ranks), Part.NOTHING) | known.parts(*at)
            late = any(parts[rank] is Part.FILES and not closed.parts[rank] for rank in place.may_leave)
            if not late or self._close(plan, parts):
                return

    def _is_done(self, parts: Mapping[int, Part]) -> bool:
        """Whether the commands of all ranks that end the job have ended with 0."""
        return all(self._ended_well(rank, part) for rank, part in parts.items() if rank not in self._place.may_leave)

    def _ended_well(self, rank: int, part: Part) -> bool:
        if part is Part.FILES:
            return self._read_part(rank, LAST_SET).ended_well
        key = self._keys.part(self._place.attempt, LAST_SET, rank, part.value)
        return part is Part.NOTHING and decode(EmptyPart, self._store.get(key)).ended_well

    def _close(self, plan: SetPlan, parts: Mapping[int, Part], left: Collection[int] = ()) -> str:
        """Closes a set; the reason where a rank missed it, or its parts are no checkpoint. `left`: ranks that have ended."""
        place, number = self._place, plan.number
        if problem := self._explain_miss(number, parts):
            return problem
        problem, read = self._judge(plan, parts, left)
        if problem:
            return problem
        writers = {one.rank for one in read}
        step = max(one.step for one in read)
        keys = tuple(
            self._keys.part(place.attempt, number, rank) if rank in writers else "" for rank in range(place.ranks)
        )
        made = CheckpointSet(
            job=place.job.id, attempt=place.attempt, number=number, step=step, closed_at=self._now(), parts=keys
        )
        self._store.put(self._keys.closed(place.attempt, number), encode(made))
        self._state.plans[number] = replace(plan, step=step)
        self._note(f"{self._describe_set(step, number)}: {len(writers)} of {place.ranks} ranks have files")
        return ""

    def _describe_set(self, step: int, number: int) -> str:
        """Words that a set is closed; a trainer that tells no step, and a workbench, have sets with a number alone."""
        if step >= 0:
            return f"checkpoint {step} is closed"
        which = "the last set" if number == LAST_SET else f"set {number}"
        return f"{which} of the folder is saved" if self._place.job.workbench else f"{which} is closed"

    def _judge(self, plan: SetPlan, parts: Mapping[int, Part], left: Collection[int]) -> tuple[str, list[Commit]]:
        """Reads the parts with files, of a set that no rank missed; why they are no checkpoint, empty where they are one."""
        place = self._place
        writers = [rank for rank, part in sorted(parts.items()) if part is Part.FILES]
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            read = list(pool.map(lambda rank: self._read_part(rank, plan.number), writers))
        required = find_required(place, plan.number, left)
        if problem := find_left_out(plan, read, place):
            self._lacks_ranks = True
            return problem, read
        return judge_parts(plan, read, place.job.checkpoint_scope, place.ranks, required, place.job.roles), read

    def _explain_miss(self, number: int, parts: Mapping[int, Part]) -> str:
        """Words what the first rank said that missed a set; empty where none did."""
        first = min((rank for rank, part in parts.items() if part is Part.MISSED), default=None)
        if first is None:
            return ""
        with suppress(Garbled, Missing):  # whatever it says, the set is missed
            document = self._store.get(self._keys.part(self._place.attempt, number, first, Part.MISSED.value))
            return f"{self._place.name(first).capitalize()} said: {decode(Missed, document).reason}."
        return f"{self._place.name(first)} missed it"

    def _read_part(self, rank: int, number: int) -> Commit:
        own = self._state.newest
        if own is not None and (rank, number) == (self._place.rank, own.number):
            return own
        return decode(Commit, self._store.get(self._keys.part(self._place.attempt, number, rank)))

    def _is_openers_own(self, number: int, parts: Mapping[int, Part]) -> bool:
        """Whether only the rank that opened a set missed it: its trainer had gone on, and will be met elsewhere next time."""
        plan = self._state.plans.get(number)
        missed = [rank for rank, part in parts.items() if part is Part.MISSED]
        return plan is not None and bool(plan.layout) and missed == [plan.rank]
