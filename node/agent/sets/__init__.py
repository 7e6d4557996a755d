"""Brings one rank's checkpoints into sets: recognises what lies in the folder, opens a set, answers it, closes it.

In a set the ranks commit the same checkpoint. The rank that opens it writes a plan, which names the checkpoint; each rank answers
with a part; whoever answers last closes it (docs/decisions/checkpoints.md).
"""
