"""Fills the catalogue: what has ended, what machines cost, and which capacity is reserved. Nothing of jobs and grids waits for it."""
