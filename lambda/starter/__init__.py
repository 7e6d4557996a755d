"""Starts what uploaded data starts, once for each version of an object, and tells people where a start was refused."""
