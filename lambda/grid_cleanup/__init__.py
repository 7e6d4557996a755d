"""The cleanup of grids: what an execution left behind that ended by no step of its own, woken by its end."""
