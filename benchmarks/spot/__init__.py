"""Spot: how much of what is paid becomes progress, over traces of interruptions that were measured on AWS."""
