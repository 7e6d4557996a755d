"""The cleanup of grids: ends what an execution left behind that did not end by its own steps."""
