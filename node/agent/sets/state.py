"""All that a rank remembers of the sets of its attempt, in one record that can be printed."""

from __future__ import annotations

from dataclasses import dataclass, field

from contract.commits import Commit, SetPlan, name_checkpoint


@dataclass
class SetState:
    """Times are AWS's, UTC epoch seconds."""

    due: float
    """From when on the next set may be opened."""
    number: int = 1
    """Of the next set."""
    plan: SetPlan | None = None
    """Of the set that waits for this rank's answer."""
    seen_at: float = 0.0
    """When the plan was first seen."""
    done: str = ""
    """The checkpoint (`Saved.identity`) that this rank opens no set with: it has answered with it, or found it not whole any more."""
    restored: int | None = None
    """The step with which the attempt began, -1 where that is unknown; None where it restored nothing."""
    closed_step: int = -1
    """Of the newest set that is known to be closed."""
    newest: Commit | None = None
    newest_key: str = ""
    """This rank's newest part of a set."""
    plans: dict[int, SetPlan] = field(default_factory=dict)
    """Of the sets that this rank has answered, by number."""
    unsettled: bool = False
    """Whether this rank has answered a set and not yet looked who else has."""
    settled: int = 0
    """The newest set that all ranks have answered: it is closed, or it never will be."""
    unfit: int = 0
    """The newest set of a layout whose parts are no checkpoint, although none missed it: a rank may still take its answer back."""
    silent: SetPlan | None = None
    """A set that this rank answered without a checkpoint of its own, although another rank had named one."""
    why: str = ""
    """Why there is no answer yet."""
    noted: int = 0
    """The newest set of which the node's log says why it is late."""
    looks: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By what was looked at: about which checkpoint, and until when that is enough."""

    def is_time(self, what: str, now: float, pause_s: float, about: str = "") -> bool:
        """Whether to look again: not within the pause after the look before, unless that was about another checkpoint. Takes note of
        this look."""
        before, until = self.looks.get(what, ("", 0.0))
        if now < until and about == before:
            return False
        self.looks[what] = about, now + pause_s
        return True

    def take_answer(self, plan: SetPlan, identity: str, *, due: float) -> None:
        """Goes on to the next set."""
        self.plans[self.number], self.done, self.why = plan, identity, ""
        self.number, self.plan, self.due = self.number + 1, None, due
        self.unsettled = True

    def describe(self, now: float) -> str:
        """Says in one line where this rank stands."""
        if self.plan is not None:
            which = name_checkpoint(self.plan.step, self.plan.name)
            at = f"set {self.number} with {which} of rank {self.plan.rank}, since {now - self.seen_at:.0f} s"
        else:
            at = f"set {self.number}, due {'for' if now >= self.due else 'in'} {abs(now - self.due):.0f} s"
        last = (
            f"newest closed checkpoint {self.closed_step}" if self.closed_step >= 0 else "none closed in this attempt"
        )
        return "; ".join(part for part in (at, self.why, last) if part)
