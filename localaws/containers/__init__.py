"""Containers: each is a process in a folder that its image fills."""
