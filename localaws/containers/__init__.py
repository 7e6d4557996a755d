"""Containers: a process each, in a folder that its image fills."""
