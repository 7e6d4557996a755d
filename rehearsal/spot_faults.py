"""The faults of spot capacity: AWS takes nodes back, says that it may, or wants more for them."""

from __future__ import annotations

from rehearsal.fault_keys import JOB, LASTING, OF_SPOT, FaultKey, FaultKind, factor

SPOT_FAULTS: dict[str, FaultKind] = {
    "spot-kill": FaultKind(
        "AWS takes a spot node back at once: the notice, which is best effort, never came",
        "Interrupted, as EC2 says it: a new attempt from the newest checkpoint, wherever there is capacity.",
        OF_SPOT,
    ),
    "spot-notice": FaultKind(
        "AWS takes a spot node back, two minutes after a notice in its metadata",
        "The node's agent tells all ranks, which commit a last checkpoint. Interrupted: a new attempt from there, wherever there is "
        "capacity.",
        OF_SPOT,
    ),
    "spot-price-moves": FaultKind(
        "the spot price of places becomes this many times what it was; empty keys name all",
        "A job that waits asks the cheaper places of a type first, by prices that are at most an hour old. One that runs sees nothing.",
        {
            "factor": factor("3", "times the price before"),
            "region": FaultKey("", "of the place", "a region", JOB.fits),
            "zone": FaultKey("", "of the place", "a zone", JOB.fits),
            "type": FaultKey("", "of the instances", "an EC2 type", JOB.fits),
            **LASTING,
        },
    ),
    "spot-rebalance": FaultKind(
        "AWS says in a spot node's metadata that it expects to take it back (a rebalance recommendation), and does not",
        "Nothing happens; with `limits.leave_on_rebalance`, once the attempt has a checkpoint, all ranks commit a last one, and a new "
        "attempt begins (Interrupted).",
        OF_SPOT,
    ),
}
