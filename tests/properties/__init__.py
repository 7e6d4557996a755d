"""Property tests: what must hold whatever happens, in whatever order."""
