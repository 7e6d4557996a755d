"""The tables of refused searches."""
