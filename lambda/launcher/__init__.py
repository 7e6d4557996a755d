"""Launch: walks the ladder until all nodes of an attempt exist together, or nothing does."""
