"""Starts the processes of the training on the nodes, as the request's `launcher` says."""
