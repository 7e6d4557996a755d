"""The deployment units, one per file: they wire parts together and hold no logic."""
