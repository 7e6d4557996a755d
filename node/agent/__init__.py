"""The node agent: reads its job and its orders, runs the training command, reports facts, powers off by returning."""
