"""Faults of the control plane, of nodes, of spot, of storage and of the workflow, each alone and beside a trouble of AWS."""
