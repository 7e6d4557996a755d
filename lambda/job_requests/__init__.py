"""Reads a request of the Train machine: Admit that of an execution, Plan those of a grid's lines that run on clusters."""
