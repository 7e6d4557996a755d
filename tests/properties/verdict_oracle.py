"""Names the ends that an attempt may have; it alone knows what really happened:

1. A cause is an error of the code, a node that went away, or an order. A trainer that broke because a peer was gone is an effect.
2. An error of which no report ever arrived, because its node went away first, is a node that went away; an order of which nobody
   was told is none.
3. An order names the end, unless an error of the code came before it.
4. An error of the code names the end (TrainingFailed) if every other node has told its end, or was heard after the error.
5. Otherwise a node that went away names it: NodeLost, or the order's error where there is an order.
6. A node that went away after it had told how its work ended is not lost.
7. Where two moments are closer than the reports can tell (CLOSE_S), either may come first; and of several nodes' orders, any may
   become that of all.
8. With no cause at all nothing ends but by success: not by a table that is away from everybody, not by a look in which EC2 does not
   know a node, not by a late report, a stranger's report, or a clock that is five minutes off.
9. Success is that every node told an exit with 0.
10. Whatever happens, there is an end.
11. A stall is an order of the attendant's, which comes only where no step was finished for as long as the request says: silence, a table
    that is away, a frozen node and a wrong clock are none.
"""

from __future__ import annotations

from tests.properties.verdict_nodes import NEVER, Nodes

CLOSE_S = 4.0
"""A node dates its reports up to a second early, AWS dates its answers in whole seconds, and the attendant leaves two."""


def allowed_ends(world: Nodes) -> set[str]:
    """The names that the end may have now; more than one only where rule 7 says so."""
    asked = [(at, order) for at, order in world.asked if order in world.told]
    if world.table.created is not None:
        asked += [(at, order) for order, at in [world.table.created]]
    orders, moments = {order.error for _, order in asked}, [at for at, _ in asked]
    lost = [rank for _, rank in world.losses if not world.all[rank].told_end]
    errors = [(at, rank) for at, rank in world.errors if rank not in lost]
    gone = (orders or {"NodeLost"}) if lost else set[str]()
    if not errors:
        well = all(node.told_end and node.well for node in world.all)
        return gone or orders | ({"success"} if well else set())
    first = min(errors)[0]
    names = set[str]()
    ordered_at = min(moments, default=NEVER)
    if ordered_at <= first + CLOSE_S:
        names |= orders  # rule 3
    if ordered_at >= first - CLOSE_S:
        unheard = [world.all[rank].heard_at for rank in lost]
        if any(at <= first + CLOSE_S for at in unheard):
            names |= gone  # rule 5
        if all(at >= first for at in unheard):
            names.add("TrainingFailed")  # rule 4
    return names
