"""The Drain machine: waits until nothing of a deployment runs, then answers CloudFormation, which waits for the answer.

A destroy can take longer than a function may run: p5 nodes take many minutes to terminate.
"""

from __future__ import annotations

from contract import errors
from contract.timing import Timing
from stacks.parts.answering_machine import INPUT, Waiting


def drain(timing: Timing) -> Waiting:
    """Describes the wait of the Drain machine."""
    return Waiting(
        comment="Ends what runs before a destroy takes anything away. Started by CloudFormation's request to delete.",
        step="Drain",
        does="Stops every execution and ends every instance of the deployment, and asks until all are terminated.",
        unfinished=errors.StillRunning,
        again_s=timing.drain_again_s,
        patience_s=timing.drain_patience_s,
        passes_on={"since": f"{{% {INPUT}.since %}}"},
        answers="Tells CloudFormation that nothing runs, or what does and what to do about it.",
        right="InvokeTheDrain",
        description="The Drain machine: invokes its function",
        done=("Nothing runs", "Nothing of the deployment runs; CloudFormation goes on."),
        failed="Something runs, or may; CloudFormation takes nothing away.",
    )
