"""Launch: walks the ladder until it has launched all nodes of an attempt together, or none."""
