"""The constructs, one idea per file, without knowledge of the settings."""
